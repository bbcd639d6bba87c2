"""Parses the HTTP/1.1 requests of tools, and refuses all that a service could read in another way than Aileron does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

from attrs import define, field, frozen

from aileron.base.addresses import is_overriding_header, overriding_parameters
from aileron.base.http1 import CHUNKED, Malformed, RequestHead, parse_request

from ._spool import BodySpool

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 1024 * 1024
"""The longest body that is kept in memory, and later in the arguments of its run."""

MOST_LONG_BYTES = 100 * 1024 * 1024
"""The longest body."""

MOST_PUSH_BYTES = 24 * 1024 * 1024
"""The longest body of a push of git."""

PUSH_TYPE = "application/x-git-receive-pack-request"
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
_MOST_FIELDS_OF_FORM = 1000
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
    :ivar sink: holds the body if it is long. Then C{body} is empty.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    keep: bool
    sink: BodySpool | None = field(default=None, repr=False)


@define
class RequestParser:
    """A parser of the consecutive requests on one connection to one host.

    :ivar host: the host, with its port unless that is 443.
    :ivar most_bytes: the longest body of a push of git, or of any request if no long bodies are accepted.
    :ivar open_sink: returns the receiver of a long body for a content type, or None if long bodies are not accepted.
    :ivar sink: receives the body of the current request, if it is long.
    :ivar rest: the received bytes that were not parsed yet.
    """

    host: str
    most_bytes: int = MOST_BODY_BYTES
    open_sink: Callable[[str], BodySpool] | None = None
    sink: BodySpool | None = field(default=None, init=False)
    rest: bytearray = field(factory=bytearray, repr=False, init=False)
    _searched: int = field(default=0, init=False)
    _head: RequestHead | None = field(default=None, init=False)
    _fields: tuple[tuple[str, str], ...] = field(default=(), init=False)
    _body: bytearray = field(factory=bytearray, repr=False, init=False)
    _kept: int = field(default=0, init=False)
    _most: int = field(default=0, init=False)
    _taken: int = field(default=0, init=False)
    _dropped: int = field(default=0, init=False)
    _left: int = field(default=0, init=False)
    _chunked: int = field(default=0, init=False)
    _asks: bool = field(default=False, init=False)

    @property
    def has_begun(self) -> bool:
        """True if a part of the next request was received."""
        return bool(self.rest) or self._head is not None

    @property
    def held(self) -> int:
        """The number of received bytes that the parser has in memory."""
        return len(self.rest) + len(self._body) + (0 if self.sink is None else self.sink.held)

    @property
    def _most_drained(self) -> int:
        return self._most - MOST_BODY_BYTES + MOST_DRAINED_BYTES

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
            raise _too_long(self._most)
        found = ParsedRequest(
            head.method.decode("ascii"),
            head.target.decode("ascii"),
            tuple(_drop_hops(self._fields)),
            bytes(self._body),
            "close" not in _list_options(self._fields),
            self.sink,
        )
        _check_form(found)
        self._head, self._body, self._chunked, self.sink = None, bytearray(), 0, None
        return found

    def _read_head(self) -> bool:
        end = self.rest.find(_END, max(0, self._searched - len(_END))) + len(_END)
        if end < len(_END):
            self._check_beginning()
            self._searched = len(self.rest)
            return False
        if end > MOST_HEAD_BYTES:
            raise _too_many_headers()
        raw = bytes(self.rest[:end])
        del self.rest[:end]
        self._searched = 0
        try:
            head = parse_request(raw)
        except Malformed:
            raise _explain_malformed(raw) from None
        self._fields = tuple(_read_fields(head.lines))
        _check_head(head, self._fields, self.host)
        self._head, self._taken = head, 0
        self._kept, self._most = self._find_limits(head)
        self._asks = self._reads_expectation(head)
        return True

    def _check_beginning(self) -> None:
        """Refuse bytes that cannot be the beginning of a request, before the head is complete."""
        if len(self.rest) > MOST_HEAD_BYTES:
            raise _too_many_headers()
        end = self.rest.find(b"\n", self._searched)
        if end < 0 or self.rest.find(b"\n", 0, end) >= 0:
            return  # the first line is not complete, or was checked when it was
        line = bytes(self.rest[:end])
        if _OTHER_VERSION.fullmatch(line) or not line.endswith(b" HTTP/1.1\r"):
            raise _explain_malformed(line)

    def _find_limits(self, head: RequestHead) -> tuple[int, int]:
        """Return the maximum length of a body that is kept in memory, and of any body, in bytes."""
        if self.open_sink is None or _find(self._fields, "content-type") == PUSH_TYPE:
            return self.most_bytes, self.most_bytes
        # guard of own tools: a long body is nothing that is read as a form
        #    -> features.own_tools.test_http.LongTests.test_form
        if _is_form(head.method.decode("ascii"), self._fields):
            return MOST_BODY_BYTES, MOST_BODY_BYTES
        return MOST_BODY_BYTES, MOST_LONG_BYTES

    def _reads_expectation(self, head: RequestHead) -> bool:
        expected = _find(self._fields, "expect")
        if not expected:
            return False
        if expected.lower() != "100-continue":
            raise UnfitRequest(417, "Only the expectation 100-continue is supported")
        if head.length > self._most:  # the tool sends no body, so nothing needs to be drained
            raise _too_long(self._most)
        return head.length != 0

    def _read_body(self, head: RequestHead) -> bool:
        if head.length == CHUNKED:
            return self._read_chunks()
        if head.length > self._most_drained:
            raise _too_long(self._most)
        missing = head.length - self._taken
        piece = self.rest[:missing]
        del self.rest[:missing]
        self._add_to_body(piece, head.length)
        return len(piece) == missing

    def _add_to_body(self, piece: bytearray, length: int = 0) -> None:
        """Add bytes to the body of the request. A body that is too long is dropped.

        :param length: the length of the body, or 0 if it is not known.
        """
        self._taken += len(piece)
        expected = max(self._taken, length)
        if expected > self._most:
            self._dropped = self._taken
            self._body.clear()
            if self.sink is not None:
                self.sink.discard()
        elif expected <= self._kept:
            self._body += piece
        else:
            self._add_to_sink(piece)
        if self._dropped > self._most_drained:
            raise _too_long(self._most)

    def _add_to_sink(self, piece: bytearray) -> None:
        """Add bytes to the receiver of a long body."""
        if self.sink is None and self.open_sink is not None:
            self.sink = self.open_sink(_find(self._fields, "content-type"))
            self.sink.write(bytes(self._body))
            self._body.clear()
        if self.sink is not None:
            self.sink.write(bytes(piece))

    def _read_chunks(self) -> bool:
        """Read chunks without extensions and without trailers, and return whether the last one was read."""
        position, is_whole = 0, False
        while not is_whole and position < len(self.rest):
            length, is_whole = self._read_chunk_part(position)
            if not length:
                break
            position += length
        self._chunked += position
        if self._chunked > self._most_drained:
            raise _too_long(self._most)
        del self.rest[:position]
        return is_whole

    def _read_chunk_part(self, position: int) -> tuple[int, bool]:
        """Read content, the line end after it or a line with a length, and return how long that is, or 0 if incomplete.

        Return also whether it ends the body.
        """
        if self._left > len(_LINE_END):
            piece = self.rest[position : position + self._left - len(_LINE_END)]
            self._add_to_body(piece)
            self._left -= len(piece)
            return len(piece), False
        line = bytes(self.rest[position : position + _MOST_CHUNK_LINE])
        if self._left:  # the line end after the content
            _check_line_end(line)
            found = len(_LINE_END) if line.startswith(_LINE_END) else 0
            self._left -= found
            return found, False
        match = _CHUNK.match(line)
        if match is None:
            _check_chunk(line)
            return 0, False
        size = int(match[1], 16)
        if size:
            self._left = size + len(_LINE_END)
            return match.end(), False
        rest = bytes(self.rest[position + match.end() : position + match.end() + len(_LINE_END)])
        _check_line_end(rest)
        return (match.end() + len(_LINE_END), True) if rest == _LINE_END else (0, False)


def _check_line_end(line: bytes) -> None:
    if line[: len(_LINE_END)] != _LINE_END[: len(line)]:
        raise UnfitRequest(400, "The body is not properly chunked, or has trailers")


def _check_chunk(line: bytes) -> None:
    # guard of own tools: chunk extensions are refused -> features.own_tools.test_http.BodyTests.test_extension
    if not _UNFINISHED_CHUNK.fullmatch(line):
        raise UnfitRequest(400, "The body is not properly chunked, or its chunks have extensions")


def _too_many_headers() -> UnfitRequest:
    return UnfitRequest(431, "The request has too many headers")


def _too_long(most_bytes: int) -> UnfitRequest:
    return UnfitRequest(413, f"The body is longer than {most_bytes} bytes. Nothing was sent to the service")


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
    # guard against attack: a request is for the host of its connection -> test_own_tools_way.WayTests.test_smuggling
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
        # guard against attack: a tool's connection speaks HTTP only -> test_own_tools_way.WayTests.test_smuggling
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


def _is_form(method: str, fields: tuple[tuple[str, str], ...]) -> bool:
    kind = _find(fields, "content-type").replace(",", ";").partition(";")[0].strip().lower()
    # guard of own tools: a POST without a type may be read as a form
    #    -> features.own_tools.test_http.BodyTests.test_untyped, instead return kind == _FORM
    return kind == _FORM or (not kind and method == "POST")


def _check_form(request: ParsedRequest) -> None:
    if not _is_form(request.method, request.headers):
        return
    if request.body.count(b"&") + request.body.count(b";") >= _MOST_FIELDS_OF_FORM:
        raise UnfitRequest(400, f"A form may have {_MOST_FIELDS_OF_FORM} fields at most")
    # guard of own tools: no field of a form replaces the method
    #    -> features.own_tools.test_http.BodyTests.test_method
    if next(overriding_parameters(request.body.decode("latin-1")), None) is not None:
        raise UnfitRequest(400, "A parameter asks the service to use another method than the one sent")
