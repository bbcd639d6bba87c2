"""Reads objects from the packs of a local repository.

An agent may change these files while they are read. So the directory is listed once, only regular files are opened, and
they are read in pieces instead of mapped into memory: if a mapped file shrinks, the daemon crashes. The size of an
object is checked before memory is allocated for the object.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from struct import Struct
from typing import Self

from attrs import define, field

from aileron.base.files import Unreadable, open_directory, open_file
from aileron.model.errors import InvalidRequest

from ._objects import BLOB, MOST_OBJECT_BYTES, Damaged, check_size

_MOST_PACKS = 64  # git itself combines packs when there are more than 50
_MOST_DELTAS, _MOST_DELTAS_BYTES = 4096, 2 * MOST_OBJECT_BYTES
OFFSET_DELTA, NAME_DELTA = 6, 7
_FAN_OUT = Struct(">256L")
_FIRST_NAME = 8 + _FAN_OUT.size
_CHUNK = 65_536
_STEPS = 4096  # delta instructions between two checks of the time limit


@define
class Packs:
    """The open packs of a repository."""

    _packs: list[Pack]
    _opened: ExitStack

    @classmethod
    def open(cls, objects: int, check: Callable[[], None]) -> Self:
        """Open the packs below an open directory of objects.

        :param objects: a file descriptor of the directory.
        :param check: called regularly; raises an error if the time limit has passed.
        :raises InvalidRequest: if a pack is damaged, a pack or the directory does not belong to this user, or there
            are too many packs.
        """
        with ExitStack() as opened:
            try:
                directory = opened.enter_context(open_directory("pack", objects))
                names = sorted(os.listdir(directory))
            except FileNotFoundError:
                names = []
            except (Unreadable, OSError):
                raise InvalidRequest("The packs of the local repository are in no directory of yours.") from None
            stems = [name.removesuffix(".idx") for name in names if name.endswith(".idx")]
            stems = [stem for stem in stems if f"{stem}.pack" in names]
            if len(stems) > _MOST_PACKS:
                raise InvalidRequest(f"The local repository has more than {_MOST_PACKS} packs. Run `git gc`.")
            packs = [_opened(opened, directory, stem, check) for stem in stems]
            return cls(packs, opened.pop_all())

    def close(self) -> None:
        """Close the pack files that were opened."""
        self._opened.close()

    def has(self, name: str) -> bool:
        """Return True if a pack has the object.

        :raises InvalidRequest: if an index is damaged.
        """
        return self._locate(name) is not None

    def read(self, name: str) -> tuple[int, bytes] | None:
        """Return the type and content of an object, or None if no pack has the object.

        The content is not checked against the object's id.

        :raises InvalidRequest: if a pack is damaged, or the object is too large.
        """
        found = self._locate(name)
        try:
            return None if found is None else found[0].read(found[1])
        except (Damaged, OSError, zlib.error):
            raise _damaged() from None

    def _locate(self, name: str) -> tuple[Pack, int] | None:
        try:
            for at, pack in enumerate(self._packs):
                offset = pack.find(bytes.fromhex(name))
                if offset is not None:
                    self._packs.insert(0, self._packs.pop(at))  # the next object is most likely in the same pack
                    return pack, offset
        except (Damaged, OSError):
            raise _damaged() from None
        return None


def _damaged() -> InvalidRequest:
    return InvalidRequest("A pack of the local repository is damaged. Run `git fsck`.")


def _opened(opened: ExitStack, directory: int, stem: str, check: Callable[[], None]) -> Pack:
    try:
        index, data = (opened.enter_context(open_file(f"{stem}.{suffix}", directory)) for suffix in ("idx", "pack"))
        return Pack(index, data, check)
    except Unreadable as error:
        raise InvalidRequest(f"{error.path} is no plain file of yours; the repository is not read.") from None
    except (Damaged, OSError):
        raise _damaged() from None


@define
class Pack:
    """An open pack and its index.

    :ivar _index: the file descriptor of the index.
    :ivar _data: the file descriptor of the pack.
    :ivar _check: called regularly; raises an error if the time limit has passed.
    :ivar _ends: for each possible first byte of an id, the number of ids whose first byte is not larger.
    """

    _index: int
    _data: int
    _check: Callable[[], None]
    _ends: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        head = _read(self._index, _FIRST_NAME, 0)
        self._ends = _FAN_OUT.unpack(head[8:])
        if head[:8] != b"\xfftOc\0\0\0\2" or list(self._ends) != sorted(self._ends):
            raise Damaged

    def find(self, name: bytes) -> int | None:
        """Return the offset of an object in the pack, or None if the pack does not have the object.

        :raises Damaged: if the index is damaged.
        """
        low, high = (0, *self._ends)[name[0]], self._ends[name[0]]
        while low < high:
            middle = (low + high) // 2
            there = _read(self._index, 20, _FIRST_NAME + 20 * middle)
            if there == name:
                return self._offset(middle)
            low, high = (middle + 1, high) if there < name else (low, middle)
        return None

    def _offset(self, number: int) -> int:
        offsets = _FIRST_NAME + 24 * self._ends[-1]
        offset = int.from_bytes(_read(self._index, 4, offsets + 4 * number))
        if offset >> 31:
            larger = offsets + 4 * self._ends[-1] + 8 * (offset & 0x7FFFFFFF)
            offset = int.from_bytes(_read(self._index, 8, larger))
        return offset

    def read(self, offset: int) -> tuple[int, bytes]:
        """Return the type and content of the object at an offset.

        :raises Damaged: if the pack is damaged, or the object is made of too many or too large deltas.
        :raises zlib.error: if the compressed data is damaged.
        :raises InvalidRequest: if the object is too large.
        """
        deltas: list[bytes] = []
        for _ in range(_MOST_DELTAS):
            kind, size, at, base = self._head(offset)
            if base is None:
                break
            if sum(map(len, deltas)) + size > _MOST_DELTAS_BYTES:
                raise Damaged
            deltas.append(self._inflate(at, size))
            check_size(BLOB, read_sizes(deltas[-1])[1])
            offset = base
        else:
            raise Damaged
        check_size(kind, read_sizes(deltas[0])[1] if deltas else size)
        check_size(BLOB, size)
        content = self._inflate(at, size)
        while deltas:
            self._check()
            content = apply_delta(content, deltas.pop(), self._check)
        return kind, content

    def _inflate(self, at: int, size: int) -> bytes:
        return inflate(lambda place: os.pread(self._data, _CHUNK, place), at, size, self._check)[0]

    def _head(self, offset: int) -> tuple[int, int, int, int | None]:
        """Read the head of the entry at an offset.

        :return: the type and size of the entry, the offset of its content, and the offset of its base, or None if the
            entry is no delta.
        :raises Damaged: if the base is missing, or the head is malformed.
        """
        head = os.pread(self._data, 64, offset)
        kind, size, at = read_head(head)
        if kind == NAME_DELTA:
            base = self.find(head[at : at + 20].ljust(20, b"\0"))
            if base is None:
                raise Damaged
            return kind, size, offset + at + 20, base
        if kind != OFFSET_DELTA:
            return kind, size, offset + at, None
        back, at = read_distance(head, at)
        if not 0 < back < offset:
            raise Damaged
        return kind, size, offset + at, offset - back


def read_distance(head: bytes, at: int) -> tuple[int, int]:
    """Return how far before a delta its base begins, and the offset after this number.

    :raises Damaged: if the number is cut off.
    """
    back, more = 0, True
    while more:
        if at >= len(head):
            raise Damaged
        back, more = back << 7 | head[at] & 127, head[at] > 127
        back, at = back + more, at + 1
    return back, at


def inflate(read: Callable[[int], bytes], at: int, size: int, check: Callable[[], None]) -> tuple[bytes, int]:
    """Decompress the data at an offset.

    :param read: returns some of the bytes that begin at an offset.
    :param size: the expected size of the decompressed data.
    :return: the decompressed data, and the offset at which the compressed data ends.
    :raises Damaged: if the decompressed data is longer or shorter than C{size}, or the compressed data has no end.
    :raises zlib.error: if the compressed data is malformed.
    """
    unpacking, parts, left, raw = zlib.decompressobj(), [], size, b""
    while not unpacking.eof:
        check()
        if not raw:
            raw = read(at)
            at += len(raw)
            if not raw:
                raise Damaged
        parts.append(unpacking.decompress(raw, left + 1))
        raw, left = unpacking.unconsumed_tail, left - len(parts[-1])
        if left < 0:
            raise Damaged
    if left:
        raise Damaged
    return b"".join(parts), at - len(unpacking.unused_data)


def apply_delta(base: bytes, delta: bytes, check: Callable[[], None]) -> bytes:
    """Return the object that a delta makes of a base object.

    :raises Damaged: if the delta is malformed, or made for another base.
    """
    before, size, at = read_sizes(delta)
    if before != len(base):
        raise Damaged
    made, step = bytearray(), 0
    while at < len(delta):
        if not (step := step + 1) % _STEPS:
            check()
        code, at = delta[at], at + 1
        if code < 128:  # insert: C{code} literal bytes follow
            count, part, at = code, delta[at : at + code], at + code
        else:  # copy a part of the base; each bit of the code announces one byte of the part's offset or length
            given = dict.fromkeys(range(7), 0)
            for bit in (bit for bit in given if code >> bit & 1):
                given[bit], at = _read_byte(delta, at), at + 1
            start = sum(given[bit] << 8 * bit for bit in range(4))
            count = sum(given[bit] << 8 * (bit - 4) for bit in range(4, 7)) or 65_536
            part = base[start : start + count]
        if not count or len(part) != count or len(made) + count > size:
            raise Damaged
        made += part
    if len(made) != size:
        raise Damaged
    return bytes(made)


def _read_byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise Damaged
    return data[at]


def read_sizes(delta: bytes) -> tuple[int, int, int]:
    """Return the sizes of a delta's base and of its result, and the offset of its first instruction.

    :raises Damaged: if C{delta} is malformed.
    """
    before, at = _number(delta, 0)
    after, at = _number(delta, at)
    return before, after, at


def read_head(data: bytes) -> tuple[int, int, int]:
    """Return the object's type, its size, and the length of the head that C{data} begins with.

    :raises Damaged: if C{data} is malformed.
    """
    number, at = _number(data, 0)
    return number >> 4 & 7, number >> 7 << 4 | number & 15, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length number (seven bits a byte, lowest first) and the offset after the number.

    :raises Damaged: if the number has more than ten bytes or is cut off.
    """
    number = 0
    for end in range(at, min(at + 10, len(data))):
        number |= (data[end] & 127) << 7 * (end - at)
        if data[end] < 128:
            return number, end + 1
    raise Damaged


def _read(descriptor: int, size: int, at: int) -> bytes:
    data = os.pread(descriptor, size, at)
    if len(data) != size:
        raise Damaged
    return data
