"""Where requests begin and end: bytes in, boundaries out.  No transport, no clock.

Whatever two parsers could read differently raises L{Malformed} (RFC 9112, sections 5 and 6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, Protocol

MAX_HEAD_BYTES = 16384
MAX_FIELDS = 100
CHUNKED = -1

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_HEAD = re.compile(
    rb"(" + _TOKEN + rb") ([!-~]+) HTTP/1\.([01])((?:\r\n" + _TOKEN + rb":[^\r\n\x00]*)*+)\r\n\r\n"
).fullmatch

# The only fields that a site looks at before a route does; none of them may stand twice.  A literal first and one
# look-ahead keep the scan at C speed.
_SEEN = re.compile(
    rb"\r\n(?=[aAcChHoOsStTxX])(authorization|content-length|content-type|cookie|host|origin|sec-fetch-site|"
    rb"sec-fetch-mode|transfer-encoding|x-aileron-proof):[ \t]*([^\r]*)",
    re.IGNORECASE,
).findall

_EXTENSION = rb"(?:;[\t\x20-\x7e\x80-\xff]*)?"
_SIZE = rb"([0-9A-Fa-f]{1,15})" + _EXTENSION + rb"\r\n"
_FIRST_CHUNK = re.compile(_SIZE).match
_NEXT_CHUNK = re.compile(rb"\r\n" + _SIZE).match  # with the line end that closes the chunk before
_TRAILER = re.compile(rb"(?:" + _TOKEN + rb":[^\r\n\x00]*\r\n)*+\r\n").match
# What may still become one of these, so that a bad line is refused at its first bad byte.
_UNFINISHED = re.compile(rb"(?:\r|\r\n)?[0-9A-Fa-f]{0,15}" + _EXTENSION + rb"\r?").fullmatch
_UNFINISHED_TRAILER = re.compile(
    rb"(?:" + _TOKEN + rb":[^\r\n\x00]*\r\n)*+(?:" + _TOKEN + rb"(?::[^\r\n\x00]*)?)?\r?"
).fullmatch
_MAX_LINE_BYTES = 512


class Malformed(Exception):
    """The bytes are not one unambiguous HTTP/1.1 request; the text says why."""


class Body(Protocol):
    """Finds the end of one body in the bytes as they come."""

    def take(self, data: bytes) -> int:
        """The index just past the body's end in C{data}, or -1: all of it belongs and more must come."""


class Fixed:
    """A body of known length."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    def take(self, data: bytes) -> int:
        """See L{Body}."""
        left = self._left
        self._left = max(0, left - len(data))
        return -1 if len(data) < left else left


class Chunked:
    """A chunked body, followed without decoding it."""

    __slots__ = ("_chunk", "_in_trailer", "_pending", "_skip")

    def __init__(self) -> None:
        self._chunk = _FIRST_CHUNK
        self._skip = 0
        self._pending = b""
        self._in_trailer = False

    def take(self, data: bytes) -> int:
        """See L{Body}.

        :raises Malformed: at the first byte that no chunked body has there.
        """
        if len(data) < self._skip:
            self._skip -= len(data)
            return -1
        before = len(self._pending)
        position, data = (0, self._pending + data) if before else (self._skip, data)
        end = self._walk(data, position)
        return end if end < 0 else end - before

    def _walk(self, data: bytes, position: int) -> int:
        size = len(data)
        while position < size:
            match = (_TRAILER if self._in_trailer else self._chunk)(data, position)
            if match is None:
                self._check_unfinished(data[position:])
                break
            if self._in_trailer:
                return match.end()
            length = int(match[1], 16)
            self._chunk = _NEXT_CHUNK
            self._in_trailer = not length
            position = match.end() + length
        self._pending = data[position:]
        self._skip = max(0, position - size)
        return -1

    def _check_unfinished(self, line: bytes) -> None:
        unfinished = _UNFINISHED_TRAILER if self._in_trailer else _UNFINISHED
        if len(line) > _MAX_LINE_BYTES or not unfinished(line):
            raise Malformed("The body is not properly chunked.")


class RequestHead(NamedTuple):
    """What a request's head says.

    :ivar minor: 0 or 1, of C{HTTP/1.x}.
    :ivar fields: the fields that a site looks at, by lower-case name; each stood once, or is a list of origins.
    :ivar length: of the body in bytes, or L{CHUNKED}.
    :ivar raw: the bytes as they came, with the closing empty line.
    """

    method: bytes
    target: bytes
    minor: int
    fields: Mapping[bytes, bytes]
    length: int
    raw: bytes

    @property
    def path(self) -> bytes:
        """The target without its query."""
        return self.target.partition(b"?")[0]

    def body(self) -> Body | None:
        """A fresh finder of the body's end, or L{None} where no body follows."""
        return Chunked() if self.length == CHUNKED else Fixed(self.length) if self.length else None


def parse_request(raw: bytes) -> RequestHead:
    """Read a whole head, with its closing empty line.

    :raises Malformed: it is none.
    """
    match = _HEAD(raw)
    if match is None or raw.count(b"\r\n") > MAX_FIELDS:
        raise Malformed("This is no HTTP/1.1 request that can be read in only one way.")
    method, target, minor, lines = match.groups()
    fields: dict[bytes, bytes] = {}
    for name, value in _SEEN(lines):
        key, given = name.lower(), value.rstrip(b" \t")
        if key in fields and key != b"origin":
            raise Malformed(f"The field {key.decode('ascii')} stands twice.")
        # Origins in a row are a list (RFC 9110, section 5.3), which is nobody's origin.
        fields[key] = fields[key] + b", " + given if key in fields else given
    return RequestHead(method, target, int(minor), fields, _length(fields), raw)


def _length(fields: Mapping[bytes, bytes]) -> int:
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None:
        if length is not None or coding.lower() != b"chunked":
            raise Malformed("The body's length is ambiguous.")
        return CHUNKED
    if length is None:
        return 0
    if not length.isdigit() or len(length) > 18:
        raise Malformed("Content-Length is not a number.")
    return int(length)
