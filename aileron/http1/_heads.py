"""Reads the heads of requests and of answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ._bodies import Body, Chunked, Fixed, UntilClose
from ._fields import CHUNKED, FIELDS, MAX_FIELDS, TOKEN, Malformed, end_to_end, length_of, once, words

_REQUEST = re.compile(rb"(" + TOKEN + rb") ([!-~]+) HTTP/1\.([01])" + FIELDS).fullmatch

# The only fields that are looked at before a route is.  A literal first and one look-ahead keep the scan at C speed.
_REQUEST_FIELDS = re.compile(
    rb"\r\n(?=[aAcChHoOsStTuUxX])"
    rb"(a(?:nthropic-version|uthorization)|co(?:n(?:nection|tent(?:[-_]length|-type))|okie)|host|origin|"
    rb"sec-fetch-(?:dest|site|mode)|transfer[-_]encoding|upgrade|x-a(?:ileron-(?:gateway-key|proof)|pi-key)): *"
    rb"([^\r]*)",
    re.IGNORECASE,
).findall

# May stand more than once.
_REQUEST_LISTS = frozenset((b"anthropic-version", b"connection", b"origin", b"upgrade", b"x-api-key"))


class RequestHead(NamedTuple):
    """The head of a request.

    :ivar minor: 0 or 1, of C{HTTP/1.x}.
    :ivar fields: those that are looked at, by lower-case name.
    :ivar length: of the body in bytes, or L{CHUNKED}.
    :ivar lines: all fields as they came, each with the line end before it.
    :ivar raw: the whole head as it came, with the closing empty line.
    """

    method: bytes
    target: bytes
    minor: int
    fields: Mapping[bytes, bytes]
    length: int
    lines: bytes
    raw: bytes

    @property
    def path(self) -> bytes:
        """The target without its query."""
        return self.target.partition(b"?")[0]


def parse_request(raw: bytes) -> RequestHead:
    """Read a whole head, with its closing empty line.

    :raises Malformed: it is none.
    """
    match = _REQUEST(raw)
    if match is None or raw.count(b"\r\n") > MAX_FIELDS:
        raise Malformed("This is no HTTP/1.1 request that can be read in only one way.")
    method, target, minor, lines = match.groups()
    fields = once(_REQUEST_FIELDS(lines), _REQUEST_LISTS)
    length = length_of(fields) or 0
    if length == CHUNKED and minor == b"0":
        raise Malformed("HTTP/1.0 knows no chunks.")
    return RequestHead(method, target, int(minor), fields, length, lines, raw)


UNTIL_CLOSE = -2

_MOST_REMEMBERED = 256
_LONGEST_REMEMBERED = 4096

_RESPONSE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?)" + FIELDS).fullmatch
_RESPONSE_FIELDS = re.compile(
    rb"\r\n(?=[cCtT])(connection|content[-_]length|transfer[-_]encoding): *([^\r]*)", re.IGNORECASE
).findall

_RESPONSE_LISTS = frozenset((b"connection",))


class ResponseHead(NamedTuple):
    """The head of an answer.

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
        """True where the final answer is still to come."""
        return self.code < 200

    def body(self, method: bytes) -> Body | None:
        """Make a fresh finder of the body's end; L{None} where no body follows an answer to C{method}."""
        if method == b"HEAD" or self.code in {204, 304} or self.interim or not self.length:
            return None
        return Chunked() if self.length == CHUNKED else UntilClose() if self.length < 0 else Fixed(self.length)


def parse_response(raw: bytes) -> ResponseHead:
    """Read a whole head, with its closing empty line.

    :raises Malformed: it is none, or its body's length could be read in two ways.
    """
    match = _RESPONSE(raw)
    if match is None:
        raise Malformed("This is no HTTP/1.1 answer that can be read in only one way.")
    minor, status, lines = match.groups()
    code = int(status[:3])
    ends = _ends if len(lines) <= _LONGEST_REMEMBERED else _ends.__wrapped__
    connection, length, keep = ends(code, minor == b"0", tuple(_RESPONSE_FIELDS(lines)))
    return ResponseHead(code, status, connection, length, keep, lines)


@lru_cache(_MOST_REMEMBERED)
def _ends(code: int, old: bool, seen: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes | None, int, bool]:
    """Read the length, and that the sender keeps the connection or not; most answers say of these the same."""
    fields = once(seen, _RESPONSE_LISTS)
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


MAX_HEAD_BYTES = 65536


class ResponsePrefix(NamedTuple):
    """As much of an answer's beginning as has come.

    :ivar interim: heads that go on at once, without what is of one hop.
    :ivar head: the final one; L{None}: it has not come whole.
    :ivar raw: the same as it came.
    :ivar rest: what came after it, or of it.
    """

    interim: bytes
    head: ResponseHead | None
    raw: bytes
    rest: bytes


def read_response_prefix(data: bytes) -> ResponsePrefix:
    """Read the heads at the beginning of C{data}.

    :raises Malformed: it is no answer to anything that was asked.
    """
    start, interim = 0, b""
    while (end := data.find(b"\r\n\r\n", start) + 4) >= 4:
        raw = data[start:end]
        head = parse_response(raw)
        if not head.interim:
            return ResponsePrefix(interim, head, raw, data[end:])
        if head.code == 101:
            raise Malformed("The provider switched protocols, which nobody had asked for.")
        lines = end_to_end(head.lines, head.connection)
        interim += b"".join((b"HTTP/1.1 ", head.status, lines, b"\r\n\r\n"))
        start = end
    if len(data) - start > MAX_HEAD_BYTES:
        raise Malformed("The provider's answer has too long a head.")
    return ResponsePrefix(interim, None, b"", data[start:])
