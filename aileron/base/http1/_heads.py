"""Parses the heads of requests and responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ._bodies import Body, Chunked, Fixed, UntilClose
from ._fields import CHUNKED, FIELDS, MAX_FIELDS, TOKEN, Malformed, end_to_end, length_of, once, words

_REQUEST = re.compile(rb"(" + TOKEN + rb") ([!-~]+) HTTP/1\.([01])" + FIELDS).fullmatch

# The only fields that are needed before a route is known. A literal first and one look-ahead keep the scan at C speed.
_REQUEST_FIELDS = re.compile(
    rb"\r\n(?=[aAcChHoOsStTuUxX])"
    rb"(a(?:nthropic-version|uthorization)|co(?:n(?:nection|tent(?:[-_]length|-type))|okie)|host|origin|"
    rb"se(?:c-fetch-(?:dest|site|mode)|rvice-worker)|transfer[-_]encoding|upgrade|"
    rb"x-a(?:ileron-(?:gateway-key|proof)|pi-key)): *"
    rb"([^\r]*)",
    re.IGNORECASE,
).findall

# Headers that may be repeated.
_REQUEST_LISTS = frozenset((b"anthropic-version", b"connection", b"origin", b"upgrade", b"x-api-key"))


class RequestHead(NamedTuple):
    """The head of a request.

    :ivar minor: 0 or 1, of C{HTTP/1.x}.
    :ivar fields: the fields that this program uses, by lower-case name.
    :ivar length: the length of the body in bytes, or L{CHUNKED}.
    :ivar lines: all fields as received, each preceded by its line end.
    :ivar raw: the complete head as received, with the closing empty line.
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
        """The path of the request, without the query."""
        return self.target.partition(b"?")[0]


def parse_request(raw: bytes) -> RequestHead:
    """Parse a complete head, with its closing empty line.

    :raises Malformed: if the head is invalid or ambiguous.
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
# The fields that determine the end of the body, and hop-by-hop fields. One scan finds both.
_RESPONSE_FIELDS = re.compile(
    rb"\r\n(?=[cCkKpPtTuU])(con(?:nection|tent[-_]length)|keep-alive|proxy-[a-z]+|t(?:e|ransfer[-_]encoding)|upgrade):"
    rb" *([^\r]*)",
    re.IGNORECASE,
).findall

_RESPONSE_LISTS = frozenset((b"connection",))
_FRAMING = frozenset((b"connection", b"content-length", b"transfer-encoding"))
_WITHOUT_BODY = frozenset((204, 304))


class HeadEnds(NamedTuple):
    """The parts of a response head about its end and its connection.

    :ivar length: the length of the body in bytes, L{CHUNKED} or L{UNTIL_CLOSE}. 0 if responses with this code have no
        body.
    :ivar keep: whether the sender intends to reuse the connection.
    :ivar hops: whether the head has hop-by-hop fields.
    """

    connection: bytes | None
    length: int
    keep: bool
    hops: bool


class ResponseHead(NamedTuple):
    """The head of a response.

    :ivar status: the code and reason phrase as received.
    :ivar lines: all fields as received, each preceded by its line end.
    :ivar ends: the length of the body and the use of the connection.
    """

    code: int
    status: bytes
    lines: bytes
    ends: HeadEnds

    @property
    def keep(self) -> bool:
        """True if the sender of the response will leave the connection open for further requests."""
        return self.ends.keep

    @property
    def length(self) -> int:
        """The body's length in bytes, L{CHUNKED} or L{UNTIL_CLOSE}, or 0 if responses with this code have no body."""
        return self.ends.length

    def end_to_end(self) -> bytes:
        """Return the header lines without hop-by-hop headers, which a proxy must not forward."""
        return end_to_end(self.lines, self.ends.connection) if self.ends.hops else self.lines

    def body(self, method: bytes) -> Body | None:
        """Return a new finder of the body's end, or None if the response to C{method} has no body."""
        length = self.ends.length
        if not length or method == b"HEAD":
            return None
        return Fixed(length) if length > 0 else Chunked() if length == CHUNKED else UntilClose()


def parse_response(raw: bytes) -> ResponseHead:
    """Parse a complete head, with its closing empty line.

    :raises Malformed: if the head is invalid or ambiguous.
    """
    match = _RESPONSE(raw)
    if match is None:
        raise Malformed("This is no HTTP/1.1 answer that can be read in only one way.")
    minor, status, lines = match.groups()
    code = int(status[:3])
    ends = _read_ends if len(lines) <= _LONGEST_REMEMBERED else _read_ends.__wrapped__
    return ResponseHead(code, status, lines, ends(code, minor == b"0", tuple(_RESPONSE_FIELDS(lines))))


@lru_cache(_MOST_REMEMBERED)
def _read_ends(code: int, old: bool, seen: tuple[tuple[bytes, bytes], ...]) -> HeadEnds:
    """Return how the response ends and whether its connection is kept.  Cached, as most responses have equal fields.

    :raises Malformed: if the fields are ambiguous or invalid.
    """
    framing = [each for each in seen if each[0].lower().replace(b"_", b"-") in _FRAMING]
    fields = once(framing, _RESPONSE_LISTS)
    length = length_of(fields)
    if length is not None:
        _check_length(code, length, old=old)
    connection = fields.get(b"connection")
    said = words(connection) if connection else ()
    keep = b"keep-alive" in said if old else b"close" not in said
    if code < 200 or code in _WITHOUT_BODY:
        length = 0
    hops = connection is not None or len(framing) < len(seen)
    return HeadEnds(connection, UNTIL_CLOSE if length is None else length, keep, hops)


def _check_length(code: int, length: int, *, old: bool) -> None:
    """Raise L{Malformed} for lengths that parsers treat differently (RFC 9112, section 6.3)."""
    if length == CHUNKED and old:
        raise Malformed("HTTP/1.0 knows no chunks.")
    if length and (code < 200 or code == 204):
        raise Malformed(f"An answer {code} has no body.")


MAX_HEAD_BYTES = 65536


class ResponsePrefix(NamedTuple):
    """The heads received so far at the beginning of a response.

    :ivar interim: the complete interim heads, to relay at once, without hop-by-hop fields.
    :ivar head: the final head, or None if it is incomplete.
    :ivar raw: the final head as received.
    :ivar rest: the bytes after the final head, or of an incomplete head.
    """

    interim: bytes
    head: ResponseHead | None
    raw: bytes
    rest: bytes


def read_response_prefix(data: bytes) -> ResponsePrefix:
    """Parse the heads at the beginning of C{data}. An incomplete head is left in the rest.

    :raises Malformed: if the response is invalid, switches protocols or has a head that is too long.
    """
    start, interim = 0, b""
    while (end := data.find(b"\r\n\r\n", start) + 4) >= 4:
        raw = data[start:end]
        head = parse_response(raw)
        if head.code >= 200:
            return ResponsePrefix(interim, head, raw, data[end:])
        if head.code == 101:
            raise Malformed("The provider switched protocols, which nobody had asked for.")
        interim += b"".join((b"HTTP/1.1 ", head.status, head.end_to_end(), b"\r\n\r\n"))
        start = end
    if len(data) - start > MAX_HEAD_BYTES:
        raise Malformed("The provider's answer has too long a head.")
    return ResponsePrefix(interim, None, b"", data[start:])
