"""A file's bytes as front matter and body."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from aileron.values import LoadError

from ._faults import PARSE, ManifestFault, Path
from ._lines import index_lines, line_of_deep_key

MAX_FILE_BYTES = 256 * 1024
_FENCE = "+++"
_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


@frozen
class Source:
    """A file, taken apart.

    :ivar values: the front matter as C{tomllib} reads it.
    :ivar lines: lines of the front matter by path; C{offset} lines of the file stand before it.
    :ivar body: what follows, verbatim.
    """

    values: Mapping[str, Any]
    lines: Mapping[Path, int]
    offset: int
    body: str


def read_source(data: bytes, file: str) -> Source:
    """Take C{data} apart: TOML between two lines of C{+++}, then the body.

    A byte order mark, blank lines before the first C{+++} and either kind of line end are fine.

    :param file: what faults call the file.
    :raises ManifestFault: it cannot be taken apart.
    """
    lines = _decoded(data, file).split("\n")
    opening = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[opening].rstrip() != _FENCE:
        raise _fault(file, opening + 1, "the file must begin with a line `+++`, before anything else")
    closing = next((n for n, line in enumerate(lines) if n > opening and line.rstrip() == _FENCE), None)
    if closing is None:
        raise _fault(file, opening + 1, "the front matter that begins here has no closing line `+++`")
    text = "\n".join([*lines[opening + 1 : closing], ""]).replace("\r\n", "\n")
    values = _toml(text, file, opening + 1, closing + 1)
    return Source(values, index_lines(text), opening + 1, "\n".join(lines[closing + 1 :]))


def _decoded(data: bytes, file: str) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise _fault(file, None, f"the file is larger than {MAX_FILE_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(file, data[: error.start].count(b"\n") + 1, "the file is not UTF-8") from None


def _toml(text: str, file: str, offset: int, end: int) -> Mapping[str, Any]:
    if (deep := line_of_deep_key(text)) is not None:
        raise _fault(file, offset + deep, "the front matter has a key of too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _fault(file, offset, "the front matter is nested too deeply") from None
    except ValueError as error:
        place = _PLACE.fullmatch(str(error))
        if place is None:
            raise _fault(file, offset, "the front matter has a value that cannot be read") from None
        line = offset + int(place[2]) if place[2] else end
        raise _fault(file, line, f"the front matter is not TOML: {place[1]}") from None


def _fault(file: str, line: int | None, message: str) -> ManifestFault:
    return ManifestFault((LoadError(PARSE, message, file, line),))
