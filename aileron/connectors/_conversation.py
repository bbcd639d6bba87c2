"""A line-based conversation with a server: bounded, read on demand, and upgradable to TLS."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

_MOST_BYTES_BEFORE_TLS = 64 * 1024


class HungUp(Exception):
    """The error for a connection that ended before the awaited data."""


class NotUnderstood(Exception):
    """The error for a response that violates the protocol or is too long."""


@define(eq=False)
class Rejected(Exception):
    """The error for a step that the server refused or does not offer.

    :ivar step: the refused step in words, such as C{the recipient a@b.example}.
    :ivar text: the server's reason, or empty.
    :ivar code: the server's code, or None if the protocol has no codes.
    """

    step: str
    text: str = ""
    code: int | None = None

    def write_message(self, name: str, said: str) -> str:
        """Return the error message, as a sentence.

        :param name: the connector's name.
        :param said: a colon and the server's reason, safe to show, or empty if there is no reason.
        """
        return f"{name} refused {self.step}{said}."

    @property
    def may_pass(self) -> bool:
        """Return whether the server reports a temporary failure, so that a retry may succeed."""
        return self.code is not None and 400 <= self.code <= 499


class LineConversation(Protocol):
    """The client side of a line-based protocol (SMTP, IMAP).

    :ivar most_bytes: how many more bytes the server may send.
    """

    transport: Any

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._heard = bytearray()
        self._more: Deferred[None] | None = None
        self._is_lost = False
        self._next: IProtocol | None = None

    def say(self, data: bytes) -> None:
        """Send C{data} to the server unchanged."""
        self.transport.write(data)

    async def line(self) -> bytes:
        """Wait for the next line, and return it without its end.

        :raises HungUp: if the connection ends before the line is complete.
        :raises NotUnderstood: if the server sent too much.
        """
        seen = 0
        while (end := self._heard.find(b"\r\n", seen)) < 0:
            seen = max(len(self._heard) - 1, 0)
            await self._hear()
        return self._take(end + 2)[:-2]

    async def exactly(self, size: int) -> bytes:
        """Wait for the next C{size} bytes, and return them.

        :raises HungUp: if the connection ends before.
        :raises NotUnderstood: if the server would send, or sent, more than its limit.
        """
        if size > self.most_bytes + len(self._heard):
            raise NotUnderstood
        while len(self._heard) < size:
            await self._hear()
        return self._take(size)

    def check_turn(self) -> None:
        """Check that no bytes are buffered, which would be read as the response to the next command.

        :raises NotUnderstood: if there are buffered bytes.
        """
        if self._heard:
            raise NotUnderstood

    def become_tls(self, speakers: TLSMemoryBIOFactory) -> IProtocol:
        """Upgrade the connection to TLS, and return the protocol inside of it.

        :raises NotUnderstood: if bytes are buffered, as in L{check_turn}.
        """
        self.check_turn()
        tls: Any = speakers.buildProtocol(self.transport.getPeer())
        self._next = tls
        tls.makeConnection(self.transport)
        inside: IProtocol = tls.wrappedProtocol
        return inside

    def dataReceived(self, data: bytes) -> None:
        if self._next is not None:
            self._next.dataReceived(data)
            return
        self.most_bytes -= len(data)
        self._heard += data
        if self.most_bytes < 0:
            self.transport.abortConnection()
        self._wake()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._is_lost = True
        if self._next is not None:
            self._next.connectionLost(reason)
        self._wake()

    def _wake(self) -> None:
        more, self._more = self._more, None
        if more is not None and not more.called:
            more.callback(None)

    async def _hear(self) -> None:
        if self.most_bytes < 0:
            raise NotUnderstood
        if self._is_lost:
            raise HungUp
        self._more = Deferred()
        await self._more

    def _take(self, size: int) -> bytes:
        taken = bytes(self._heard[:size])
        del self._heard[:size]
        return taken


AskForTls = Callable[[LineConversation], Awaitable[None]]
"""Converses before TLS, until the server agrees to TLS.

It raises L{Rejected} if the server does not offer TLS, for example after a man in the middle removed the offer.
"""


@implementer(IStreamClientEndpoint)
@frozen
class TlsEndpoint:
    """An endpoint that puts TLS between a protocol and another endpoint.

    :ivar creator: verifies the server.
    :ivar ask: runs the protocol's exchange before TLS (STARTTLS), or None if the connection starts with TLS.
    """

    endpoint: IStreamClientEndpoint
    creator: IOpenSSLClientConnectionCreator
    clock: IReactorTime
    ask: AskForTls | None

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        secure = TLSMemoryBIOFactory(self.creator, True, protocolFactory, clock=self.clock)
        if self.ask is not None:
            return Deferred.fromCoroutine(self._ask_and_secure(self.ask, secure))
        connecting: Deferred[Any] = self.endpoint.connect(secure)
        return connecting.addCallback(lambda tls: tls.wrappedProtocol)

    async def _ask_and_secure(self, ask: AskForTls, secure: TLSMemoryBIOFactory) -> IProtocol:
        plain = Factory.forProtocol(lambda: LineConversation(_MOST_BYTES_BEFORE_TLS))
        conversation: Any = await self.endpoint.connect(plain)
        try:
            await ask(conversation)
            return conversation.become_tls(secure)  # type: ignore[no-any-return]
        except BaseException:
            conversation.transport.abortConnection()
            raise
