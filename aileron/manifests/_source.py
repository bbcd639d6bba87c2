"""A file's bytes as front matter and body."""

from __future__ import annotations

from attrs import frozen

from aileron.toml import NotToml, Toml, read_toml
from aileron.values import LoadError

from ._faults import PARSE, ManifestFault

MAX_FILE_BYTES = 256 * 1024
_FENCE = "+++"


@frozen
class Source:
    """A file, taken apart.

    :ivar toml: the front matter.
    :ivar offset: how many lines of the file stand before it.
    :ivar body: what follows, verbatim.
    """

    toml: Toml
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
    return Source(_front_matter(text, file, opening + 1, closing + 1), opening + 1, "\n".join(lines[closing + 1 :]))


def _decoded(data: bytes, file: str) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise _fault(file, None, f"the file is larger than {MAX_FILE_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(file, data[: error.start].count(b"\n") + 1, "the file is not UTF-8") from None


def _front_matter(text: str, file: str, offset: int, end: int) -> Toml:
    try:
        return read_toml(text)
    except NotToml as error:
        line = end if error.at_end else offset + (error.line or 0)
        raise _fault(file, line, f"the front matter {error.problem}") from None


def _fault(file: str, line: int | None, message: str) -> ManifestFault:
    return ManifestFault((LoadError(PARSE, message, file, line),))
