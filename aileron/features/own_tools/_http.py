"""Parses the HTTP/1.1 requests of tools, and refuses all that a service could read in another way than Aileron does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from attrs import define, field, frozen

from aileron.base.addresses import is_overriding_header, overriding_parameters
from aileron.base.http1 import CHUNKED, Malformed, RequestHead, parse_request

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 1024 * 1024
MOST_DRAINED_BYTES = 16 * 1024 * 1024
"""The most bytes of a body that are read and dropped, so that the tool reads the refusal of a long body."""

_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_METHOD = re.compile(rb"[A-Z]{1,16}")
_TARGET = re.compile(r"/(?!/)[!\"$-\[\]-~]*")  # neither a fragment nor a backslash
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_OTHER_VERSION = re.compile(rb"[!-~]+ [!-~]+ HTTP/(?!1\.1\r)[0-9.]+\r")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_UNFINISHED_CHUNK = re.compile(rb"[0-9A-Fa-f]{0,8}\r?")
_MOST_CHUNK_LINE = 10  # eight digits and the line end
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_CONTENT = frozenset({"GET", "HEAD"})
_REFUSED_METHODS = frozenset({"CONNECT", "TRACE", "TRACK"})
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"})
_FRAMING = frozenset({"content-length", "expect", "host", "te", "trailer", "transfer-encoding"})
_UPGRADES = frozenset({"upgrade", "http2-settings", "sec-websocket-key", "sec-websocket-version"})
_CONNECTION_OPTIONS = frozenset({"close", "keep-alive", "te"})
_MOST_DECODINGS = 4
_FORM = "application/x-www-form-urlencoded"
_AMBIGUOUS = "This is no HTTP/1.1 request that can be read in only one way"


@frozen
class UnfitRequest(Exception):
    """The error for a request that is not passed on. Nothing was sent to the service.

    :ivar status: the status of the response, after which the connection is closed.
    :ivar why: the reason, as a sentence without its full stop, in ASCII. It quotes nothing of the request.
    """

    status: int
    why: str


@frozen
class ParsedRequest:
    """One complete request.

    :ivar headers: the end-to-end headers as pairs, names as sent, values without surrounding space.
    :ivar keep: True if the connection may be used for another request.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    keep: bool


@define
class RequestParser:
    """A parser of one request after another, from the bytes of one connection to one host.

    :ivar host: the host, with its port unless that is 443.
    :ivar rest: the received bytes that were not parsed yet.
    """

    host: str
    rest: bytes = field(default=b"", repr=False)
    _head: RequestHead | None = field(default=None, init=False)
    _fields: tuple[tuple[str, str], ...] = field(default=(), init=False)
    _body: bytearray = field(factory=bytearray, repr=False, init=False)
    _dropped: int = field(default=0, init=False)
    _left: int = field(default=0, init=False)
    _asks: bool = field(default=False, init=False)

    @property
    def has_begun(self) -> bool:
        """True if a request was received in part."""
        return bool(self.rest) or self._head is not None

    def take_expectation(self) -> bool:
        """Return whether the tool waits for C{100 Continue} before it sends the body. Later calls return False."""
        asks, self._asks = self._asks, False
        return asks and not self.rest

    def receive(self, data: bytes) -> ParsedRequest | None:
        """Add received bytes, and return a complete request or None if more bytes are needed.

        :raises UnfitRequest: if the bytes are no request that can be passed on. The parser must not be used again.
        """
        self.rest += data
        if self._head is None and not self._read_head():
            return None
        head = self._head
        if head is None or not self._read_body(head):
            return None
        if self._dropped:
            raise _too_long()
        found = ParsedRequest(
            head.method.decode("ascii"),
            head.target.decode("ascii"),
            tuple(_drop_hops(self._fields)),
            bytes(self._body),
            "close" not in _list_options(self._fields),
        )
        _check_form(found)
        self._head, self._body = None, bytearray()
        return found

    def _read_head(self) -> bool:
        end = self.rest.find(_END) + len(_END)
        if end < len(_END):
            self._check_beginning()
            return False
        if end > MOST_HEAD_BYTES:
            raise UnfitRequest(431, "The request has too many headers")
        raw, self.rest = self.rest[:end], self.rest[end:]
        try:
            head = parse_request(raw)
        except Malformed:
            raise _explain_malformed(raw) from None
        self._fields = tuple(_read_fields(head.lines))
        _check_head(head, self._fields, self.host)
        self._head = head
        self._asks = self._reads_expectation(head)
        return True

    def _check_beginning(self) -> None:
        """Refuse bytes that cannot be the beginning of a request, before the head is complete."""
        if len(self.rest) > MOST_HEAD_BYTES:
            raise UnfitRequest(431, "The request has too many headers")
        line, end, _ = self.rest.partition(b"\n")
        if end and (_OTHER_VERSION.fullmatch(line) or not line.endswith(b" HTTP/1.1\r")):
            raise _explain_malformed(self.rest)

    def _reads_expectation(self, head: RequestHead) -> bool:
        expected = _find(self._fields, "expect")
        if not expected:
            return False
        if expected.lower() != "100-continue":
            raise UnfitRequest(417, "Only the expectation 100-continue is supported")
        if head.length > MOST_BODY_BYTES:  # the tool sends no body, so nothing needs to be drained
            raise _too_long()
        return head.length != 0

    def _read_body(self, head: RequestHead) -> bool:
        if head.length == CHUNKED:
            return self._read_chunks()
        if head.length > MOST_DRAINED_BYTES:
            raise _too_long()
        missing = head.length - len(self._body) - self._dropped
        piece, self.rest = self.rest[:missing], self.rest[missing:]
        self._take(piece)
        return len(piece) == missing

    def _take(self, piece: bytes | memoryview) -> None:
        """Add a piece to the body. A long body is dropped."""
        if self._dropped or len(self._body) + len(piece) > MOST_BODY_BYTES:
            self._dropped += len(self._body) + len(piece)
            self._body.clear()
        else:
            self._body += piece
        if self._dropped > MOST_DRAINED_BYTES:
            raise _too_long()

    def _read_chunks(self) -> bool:
        """Read chunks without extensions and without trailers, and return whether the last one was read."""
        received, position = memoryview(self.rest), 0
        while position < len(received):
            if self._left > len(_LINE_END):
                piece = received[position : position + self._left - len(_LINE_END)]
                self._take(piece)
                self._left, position = self._left - len(piece), position + len(piece)
                continue
            line = bytes(received[position : position + _MOST_CHUNK_LINE])
            if self._left:  # the line end after the content
                if len(line) >= len(_LINE_END):
                    _check_line_end(line)
                    self._left, position = 0, position + len(_LINE_END)
                    continue
                break
            match = _CHUNK.match(line)
            if match is None:
                _check_chunk(line)
                break
            size = int(match[1], 16)
            if size == 0:
                return self._end_chunks(position + match.end())
            self._left, position = size + len(_LINE_END), position + match.end()
        self.rest = self.rest[position:]
        return False

    def _end_chunks(self, position: int) -> bool:
        """Read the empty line after the last chunk, and return whether it was received."""
        line = self.rest[position : position + len(_LINE_END)]
        if len(line) < len(_LINE_END):
            return False
        _check_line_end(line)
        self.rest = self.rest[position + len(_LINE_END) :]
        return True


def _check_line_end(line: bytes) -> None:
    if not line.startswith(_LINE_END):
        raise UnfitRequest(400, "The body is not properly chunked, or has trailers")


def _check_chunk(line: bytes) -> None:
    # guard of own tools: chunk extensions are refused -> features.own_tools.test_http.BodyTests.test_extension
    if not _UNFINISHED_CHUNK.fullmatch(line):
        raise UnfitRequest(400, "The body is not properly chunked, or its chunks have extensions")


def _too_long() -> UnfitRequest:
    return UnfitRequest(413, f"The body is longer than {MOST_BODY_BYTES} bytes. Nothing was sent to the service")


def _explain_malformed(raw: bytes) -> UnfitRequest:
    line, _, _ = raw.partition(b"\n")
    if _OTHER_VERSION.fullmatch(line):
        return UnfitRequest(505, "Only HTTP/1.1 is supported here")
    return UnfitRequest(400, _AMBIGUOUS)


def _read_fields(lines: bytes) -> Iterator[tuple[str, str]]:
    for line in lines.split(_LINE_END)[1:]:
        name, _, value = line.decode("latin-1").partition(":")
        yield name, value.strip(" \t")


def _find(fields: tuple[tuple[str, str], ...], name: str) -> str:
    """Return the values of a header as one list, or an empty text if there is none."""
    return ", ".join(value for each, value in fields if each.lower() == name)


def _check_head(head: RequestHead, fields: tuple[tuple[str, str], ...], host: str) -> None:
    if head.minor != 1:
        raise UnfitRequest(505, "Only HTTP/1.1 is supported here")
    method = head.method.decode("ascii")
    if not _METHOD.fullmatch(head.method) or method in _REFUSED_METHODS:
        raise UnfitRequest(405, "This method is not supported")
    # guard of own tools: the Host header names the host of the connection
    #    -> features.own_tools.test_http.HeadTests.test_other_host
    if _read_host(head) != host:
        raise UnfitRequest(421, "The Host header does not name the host of this connection")
    if method in _NO_CONTENT and head.length:
        raise UnfitRequest(400, f"A {method} request with a body is not supported")
    _check_target(head.target.decode("ascii"))
    _check_names(fields)
    # guard of own tools: Connection names no header that the service would get otherwise
    #    -> features.own_tools.test_http.HeadTests.test_connection
    if not _list_options(fields) <= _CONNECTION_OPTIONS:
        raise UnfitRequest(400, "Connection may have the options close, keep-alive and TE only")


def _check_names(fields: tuple[tuple[str, str], ...]) -> None:
    for name, _ in fields:
        lower = name.lower()
        # guard of own tools: a connection is not switched to another protocol
        #    -> features.own_tools.test_http.HeadTests.test_upgrade
        if lower.replace("_", "-") in _UPGRADES:
            raise UnfitRequest(400, "A change of protocol (Upgrade, WebSocket) is not supported")
        # guard of own tools: no header replaces the method or the path
        #    -> features.own_tools.test_http.HeadTests.test_override
        if is_overriding_header(name):
            raise UnfitRequest(400, "A header asks the service to process another request than the one sent")
        if "_" in name and lower.replace("_", "-") in _FRAMING | _HOP_BY_HOP:
            raise UnfitRequest(400, _AMBIGUOUS)


def _read_host(head: RequestHead) -> str:
    named = head.fields.get(b"host", b"").decode("latin-1").lower()
    return named.removesuffix(":443")


def _check_target(target: str) -> None:
    if not _TARGET.fullmatch(target):
        raise UnfitRequest(400, "The target of the request is not a plain path")
    path, _, query = target.partition("?")
    # guard of own tools: a path leads where it seems to -> features.own_tools.test_http.TargetTests.test_dots
    if _BAD_ESCAPE.search(target) or not _is_plain(path):
        raise UnfitRequest(400, "The path has dot segments, control characters or ambiguous escapes")
    # guard of own tools: no parameter replaces the method -> features.own_tools.test_http.TargetTests.test_method
    if next(overriding_parameters(query), None) is not None:
        raise UnfitRequest(400, "A parameter asks the service to use another method than the one sent")


def _is_plain(path: str) -> bool:
    """Return whether a path has no dot segments and no control characters, however often it is decoded."""
    for _ in range(_MOST_DECODINGS):
        if _CONTROL.search(path) or any(_is_dots(each) for each in path.replace("\\", "/").split("/")):
            return False
        try:
            decoded = unquote_to_bytes(path).decode("utf-8")
        except UnicodeDecodeError:  # such as an overlong form of a dot
            return False
        if decoded == path:
            return True
        path = decoded
    return False


def _is_dots(segment: str) -> bool:
    return segment.partition(";")[0].strip() in (".", "..")


def _list_options(fields: tuple[tuple[str, str], ...]) -> frozenset[str]:
    return frozenset(each.strip() for each in _find(fields, "connection").lower().split(",")) - {""}


def _drop_hops(fields: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Return the end-to-end headers (RFC 9110, section 7.6.1)."""
    return ((name, value) for name, value in fields if name.lower() not in _HOP_BY_HOP | _FRAMING)


def _check_form(request: ParsedRequest) -> None:
    kind = _find(request.headers, "content-type").partition(";")[0].strip().lower()
    if kind == _FORM and next(overriding_parameters(request.body.decode("latin-1")), None) is not None:
        raise UnfitRequest(400, "A parameter asks the service to use another method than the one sent")
