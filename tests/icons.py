"""Draws the icons of the pages as PNG, for systems that take no SVG: C{python -m tests.icons}.

It reads what the pages' SVG icons are made of, rectangles and polygons, and needs no library.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from attrs import frozen

import aileron.web

STATIC = Path(aileron.web.__file__).with_name("static")
MADE = {
    "icon-180.png": ("icon-maskable.svg", 180),  # for iOS, which rounds the corners itself
    "icon-192.png": ("icon.svg", 192),
    "icon-512.png": ("icon.svg", 512),
}
"""The PNG icons: of which SVG each is drawn, and its width in pixels."""

_ACROSS = 4
"""The samples of a pixel in each direction."""

_SVG = "{http://www.w3.org/2000/svg}"

Point = tuple[float, float]
Color = tuple[int, int, int]


@frozen
class Shape:
    """A filled shape.

    :ivar corners: of its outline.
    :ivar radius: of its rounded corners, for a rectangle.
    """

    corners: Sequence[Point]
    color: Color
    opacity: float
    radius: float = 0.0

    def covers(self, x: float, y: float) -> bool:
        """Return whether a point lies in it."""
        (left, top), (right, bottom) = self.corners[0], self.corners[2]
        if self.radius:
            inner_x = min(max(x, left + self.radius), right - self.radius)
            inner_y = min(max(y, top + self.radius), bottom - self.radius)
            return (x - inner_x) ** 2 + (y - inner_y) ** 2 <= self.radius**2
        inside = False
        for (x1, y1), (x2, y2) in zip(self.corners, (*self.corners[1:], self.corners[0]), strict=True):
            if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
                inside = not inside
        return inside


def read_svg(text: str) -> tuple[float, float, Sequence[Shape]]:
    """Return the first coordinate, the width and the shapes of an icon, which is a square.

    :raises ValueError: if it has something else than rectangles, and paths of straight lines.
    """
    root = ET.fromstring(text)
    begin, _, width, _ = map(float, root.attrib["viewBox"].split())
    return begin, width, [_read_shape(each) for each in root]


def _read_shape(element: ET.Element) -> Shape:
    given, color = element.attrib, _read_color(element.attrib["fill"])
    if element.tag == f"{_SVG}path":
        return Shape(list(_follow(given["d"])), color, float(given.get("opacity", 1)))
    if element.tag != f"{_SVG}rect":
        raise ValueError(f"cannot draw {element.tag}")
    x, y = (float(given.get(name, 0)) for name in ("x", "y"))
    width, height = float(given["width"]), float(given["height"])
    corners = ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
    return Shape(corners, color, float(given.get("opacity", 1)), float(given.get("rx", 0)))


def _read_color(text: str) -> Color:
    digits = text[1:] if len(text) == len("#rrggbb") else "".join(2 * each for each in text[1:])
    red, green, blue = bytes.fromhex(digits)
    return red, green, blue


def _follow(path: str) -> Iterator[Point]:
    """Yield the corners of a path.

    :raises ValueError: if it has other steps than C{M}, C{L}, C{v} and C{z}.
    """
    x = y = 0.0
    for step in re.findall(r"[A-Za-z][^A-Za-z]*", path):
        numbers = [float(each) for each in re.findall(r"-?[\d.]+", step[1:])]
        if step[0] == "v":
            y += numbers[0]
            yield x, y
        elif step[0] in "ML":
            for x, y in zip(numbers[::2], numbers[1::2], strict=True):
                yield x, y
        elif step[0] != "z":
            raise ValueError(f"cannot follow {step}")


def draw(svg: str, size: int, wanted: Sequence[int] | None = None) -> list[bytes]:
    """Return the rows of an icon, four bytes a pixel: red, green, blue and how opaque it is.

    :param wanted: the numbers of the rows, or None for all.
    """
    begin, width, shapes = read_svg(svg)
    step, rows = width / size / _ACROSS, list[bytes]()
    places = [begin + (each + 0.5) * step for each in range(size * _ACROSS)]
    for top in (_ACROSS * each for each in (range(size) if wanted is None else wanted)):
        row = bytearray()
        for left in range(0, size * _ACROSS, _ACROSS):
            samples = [
                _sample(shapes, places[left + right], places[top + down])
                for down in range(_ACROSS)
                for right in range(_ACROSS)
            ]
            row += _mix(samples)
        rows.append(bytes(row))
    return rows


def _sample(shapes: Sequence[Shape], x: float, y: float) -> tuple[float, float, float, float]:
    red = green = blue = alpha = 0.0
    for shape in shapes:
        if shape.covers(x, y):
            rest = 1 - shape.opacity
            red, green, blue = (
                new * shape.opacity + old * rest for new, old in zip(shape.color, (red, green, blue), strict=True)
            )
            alpha = shape.opacity + alpha * rest
    return red, green, blue, alpha


def _mix(samples: Sequence[tuple[float, float, float, float]]) -> bytes:
    """Return the mean of a pixel's samples. Those where nothing is have no color."""
    opaque = sum(each[3] for each in samples)
    if not opaque:
        return bytes(4)
    colors = [round(sum(each[at] for each in samples) / opaque) for at in range(3)]
    return bytes((*(min(each, 255) for each in colors), round(255 * opaque / len(samples))))


def write_png(rows: Sequence[bytes]) -> bytes:
    """Return a PNG of these rows (ISO/IEC 15948), without an interlace."""
    size = len(rows)
    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + each for each in rows), 9)
    chunks = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def read_png(data: bytes) -> list[bytes]:
    """Return the rows of a PNG that L{write_png} has written."""
    at, found = 8, b""
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if data[at + 4 : at + 8] == b"IDAT":
            found += data[at + 8 : at + 8 + length]
        at += length + 12
    (size,) = struct.unpack_from(">I", data, 16)
    plain, each = zlib.decompress(found), size * 4 + 1
    return [plain[begin + 1 : begin + each] for begin in range(0, len(plain), each)]


def main() -> None:
    """Write all icons."""
    for name, (source, size) in MADE.items():
        rows = draw((STATIC / source).read_text(encoding="utf-8"), size)
        (STATIC / name).write_bytes(write_png(rows))


if __name__ == "__main__":
    main()
