"""What the head of an answer says."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ._bodies import Body, Chunked, Fixed, UntilClose
from ._fields import CHUNKED, FIELDS, length_of, once, words
from ._malformed import Malformed

UNTIL_CLOSE = -2

_MOST_REMEMBERED = 256
_LONGEST_REMEMBERED = 4096

_HEAD = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?)" + FIELDS).fullmatch
_SEEN = re.compile(
    rb"\r\n(?=[cCtT])(connection|content[-_]length|transfer[-_]encoding): *([^\r]*)", re.IGNORECASE
).findall

_LISTS = frozenset((b"connection",))


class ResponseHead(NamedTuple):
    """What an answer's head says.

    :ivar status: the code as it came, with what stands after it.
    :ivar connection: value of the field of that name, L{None} where there is none.
    :ivar length: of the body in bytes, L{CHUNKED} or L{UNTIL_CLOSE}, as it would be of an answer that has one.
    :ivar keep: whether its sender means to keep the connection.
    :ivar lines: all fields as they came, each with the line end before it.
    """

    code: int
    status: bytes
    connection: bytes | None
    length: int
    keep: bool
    lines: bytes

    @property
    def interim(self) -> bool:
        """Whether the final answer is still to come."""
        return self.code < 200

    def body(self, method: bytes) -> Body | None:
        """A fresh finder of the body's end, or L{None} where no body follows an answer to C{method}."""
        if method == b"HEAD" or self.code in {204, 304} or self.interim or not self.length:
            return None
        return Chunked() if self.length == CHUNKED else UntilClose() if self.length < 0 else Fixed(self.length)


def parse_response(raw: bytes) -> ResponseHead:
    """Read a whole head, with its closing empty line.

    :raises Malformed: it is none, or its body's length could be read in two ways.
    """
    match = _HEAD(raw)
    if match is None:
        raise Malformed("This is no HTTP/1.1 answer that can be read in only one way.")
    minor, status, lines = match.groups()
    code = int(status[:3])
    ends = _ends if len(lines) <= _LONGEST_REMEMBERED else _ends.__wrapped__
    connection, length, keep = ends(code, minor == b"0", tuple(_SEEN(lines)))
    return ResponseHead(code, status, connection, length, keep, lines)


@lru_cache(_MOST_REMEMBERED)
def _ends(code: int, old: bool, seen: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes | None, int, bool]:
    """Connection, length and whether its sender means to keep the connection; most answers say of these the same."""
    fields = once(seen, _LISTS)
    length = length_of(fields)
    if length is not None:
        _check_length(code, length, old=old)
    connection = fields.get(b"connection")
    said = words(connection) if connection else ()
    keep = b"keep-alive" in said if old else b"close" not in said
    return connection, UNTIL_CLOSE if length is None else length, keep


def _check_length(code: int, length: int, *, old: bool) -> None:
    """Refuse lengths that some would read and others not (RFC 9112, section 6.3)."""
    if length == CHUNKED and old:
        raise Malformed("HTTP/1.0 knows no chunks.")
    if length and (code < 200 or code == 204):
        raise Malformed(f"An answer {code} has no body.")
