"""One connection to the daemon: a request, its answer, the next; all of an answer before any of it is told."""

from __future__ import annotations

from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IHandshakeListener, IReadWriteDescriptor, ISSLTransport
from twisted.internet.protocol import Protocol as TwistedProtocol
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.http1 import CHUNKED, UNTIL_CLOSE, Body, Malformed, ResponseHead, parse_response

_MAX_HEAD_BYTES = 64 * 1024


class NotSecured(Exception):
    """The connection broke while TLS was being agreed on, before anything of ours was sent by it.

    :ivar reason: what broke it.
    """

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Keeper(Protocol):
    """Who has the connections that nothing is asked on."""

    def keep(self, line: Line) -> None:
        """It can be asked again."""

    def forget(self, line: Line) -> None:
        """It is gone."""


@implementer(IHandshakeListener)
class Line(TwistedProtocol):
    """A connection; one request at a time.

    :param max_bytes: an answer's body beyond this is cut there, and the connection ended.
    """

    transport: Any

    def __init__(self, keeper: Keeper, max_bytes: int) -> None:
        self._keeper = keeper
        self._max_bytes = max_bytes
        self._due: Deferred[tuple[ResponseHead, bytes]] | None = None
        self._closed: Deferred[None] | None = None
        self._shaking_hands = False
        self._ask_anew(b"")

    def connectionMade(self) -> None:
        """By TLS, what is asked waits for the handshake."""
        self._shaking_hands = ISSLTransport.providedBy(self.transport)

    def handshakeCompleted(self) -> None:
        """What is asked may arrive from now on."""
        self._shaking_hands = False

    def ask(self, method: bytes, request: bytes) -> Deferred[tuple[ResponseHead, bytes]]:
        """Send a whole request; its answer's head and body.  Cancelling ends the connection.

        :raises Exception: (errback) whatever cut the answer off, or L{Malformed}, or L{NotSecured}.
        """
        self._ask_anew(method)
        due: Deferred[tuple[ResponseHead, bytes]] = Deferred(lambda _: self.transport.abortConnection())
        self._due = due
        self.transport.write(request)
        if IReadWriteDescriptor.providedBy(self.transport):
            self.transport.doWrite()  # now and not a turn later; a failure the reactor meets again, and tells
        return due

    def close(self) -> Deferred[None]:
        """End it, where nothing is under way; fires when it has ended."""
        self._closed = Deferred()
        self.transport.loseConnection()
        return self._closed

    def _ask_anew(self, method: bytes) -> None:
        self._method = method
        self._unread = b""
        self._head: ResponseHead | None = None
        self._finder: Body | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def dataReceived(self, data: bytes) -> None:
        """Bytes of an answer; those that nobody waits for end the connection."""
        if self._due is None or self._due.called:
            self.transport.abortConnection()
            return
        try:
            self._take(data)
        except Malformed:
            self._tell(Failure())
            self.transport.abortConnection()

    def _take(self, data: bytes) -> None:
        if self._head is None:
            data = self._take_heads(self._unread + data)
        if self._head is None:
            self._unread = data
            return
        end = self._finder.take(data) if self._finder else 0
        self._parts.append(data if end < 0 else data[:end])
        self._size += len(self._parts[-1])
        if end >= 0:
            self._finish(self._head, keep=self._head.keep and len(data) == end)
        elif self._size > self._max_bytes:
            self._finish(self._head, keep=False)

    def _take_heads(self, data: bytes) -> bytes:
        """Read the final answer's head, and the interim ones before it; what follows them."""
        while self._head is None:
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:
                if len(data) > _MAX_HEAD_BYTES:
                    raise Malformed("The answer's head is too long.")
                break
            head, data = parse_response(data[:end]), data[end:]
            if not head.interim:
                self._head, self._finder = head, head.body(self._method)
        return data

    def _finish(self, head: ResponseHead, *, keep: bool) -> None:
        body = b"".join(self._parts)
        if self._finder and head.length == CHUNKED and self._size <= self._max_bytes:
            body = unchunked(body)
        if keep:
            due, self._due = self._due, None
            self._keeper.keep(self)
        else:
            due = self._due
            self.transport.abortConnection()
        if due is not None and not due.called:
            due.callback((head, body))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """What was under way ends with it."""
        self._keeper.forget(self)
        if self._shaking_hands:
            reason = Failure(NotSecured(reason.value))
        head = self._head
        if head is not None and head.length == UNTIL_CLOSE and reason.check(ConnectionDone):
            self._tell((head, b"".join(self._parts)))
        else:
            self._tell(reason)
        if self._closed is not None:
            self._closed.callback(None)

    def _tell(self, news: tuple[ResponseHead, bytes] | Failure) -> None:
        if self._due is not None and not self._due.called:
            self._due.callback(news)


def unchunked(raw: bytes) -> bytes:
    """What a chunked body says, whose chunks were found sound (RFC 9112, section 7.1)."""
    parts: list[bytes] = []
    at = 0
    while True:
        begin = raw.index(b"\r\n", at) + 2
        size = int(raw[at : begin - 2].partition(b";")[0], 16)
        if not size:
            return b"".join(parts)
        parts.append(raw[begin : begin + size])
        at = begin + size + 2
