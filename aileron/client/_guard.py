"""Connections that are judged before HTTP speaks on them, and while it waits for an answer's head."""

from __future__ import annotations

from typing import Any, Self, cast

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import (
    IHandshakeListener,
    IProtocol,
    IProtocolFactory,
    ISSLTransport,
    IStreamClientEndpoint,
    ITransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from zope.interface import implementer

MAX_HEAD_BYTES = 64 * 1024


class NotConnected(Exception):
    """No connection was made, or its TLS handshake failed: nothing of ours was sent by it.

    :ivar reason: what went wrong.
    """

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__(str(reason))
        self.reason = reason


@implementer(IHandshakeListener)
class GuardedConnection(ProtocolWrapper):
    """Stands between HTTP and its transport: a request waits for the TLS handshake, and an endless head is cut off.

    :ivar opened: fires with HTTP's protocol as soon as a request may be written.
    """

    transport: Any

    def __init__(self, factory: WrappingFactory[Self], wrapped: IProtocol) -> None:
        super().__init__(factory, wrapped)
        self._is_open = False
        self._head_bytes_left: int | None = None
        self.opened: Deferred[IProtocol] = Deferred(lambda _: self.transport.abortConnection())

    def makeConnection(self, transport: ITransport) -> None:
        """By TLS, HTTP is connected when the handshake is done; else at once."""
        if ISSLTransport.providedBy(transport):
            Protocol.makeConnection(self, transport)
        else:
            self._open(transport)

    def handshakeCompleted(self) -> None:
        """The peer has proved who it is."""
        # What is being closed already, as for a certificate of another name, is nothing to write on.
        if not self.transport.disconnecting:
            self._open(self.transport)

    def _open(self, transport: ITransport) -> None:
        self._is_open = True
        super().makeConnection(transport)  # type: ignore[no-untyped-call]
        self.opened.callback(self.wrappedProtocol)

    def writeSequence(self, data: Any) -> None:
        """Send a request's head; what comes from now on is the head of its answer."""
        self._head_bytes_left = MAX_HEAD_BYTES
        super().writeSequence(data)  # type: ignore[no-untyped-call]

    def pauseProducing(self) -> None:
        """Pause; this is how Twisted's parser begins a body."""
        self._head_bytes_left = None
        self.transport.pauseProducing()

    def dataReceived(self, data: bytes) -> None:
        """Pass it on, and cut the connection off where the head does not end."""
        if self._head_bytes_left is not None:
            self._head_bytes_left -= len(data)
        super().dataReceived(data)  # type: ignore[no-untyped-call]
        if self._head_bytes_left is not None and self._head_bytes_left < 0:
            self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass the loss on to the wrapped protocol, or to the caller that waits for the connection."""
        if self._is_open:
            super().connectionLost(reason)  # type: ignore[no-untyped-call]
        elif not self.opened.called:
            self.opened.errback(reason)


class _GuardingFactory(WrappingFactory):
    noisy = False
    protocol = GuardedConnection


@implementer(IStreamClientEndpoint)
@frozen
class GuardedEndpoint:
    """Connects for HTTP; a connection counts as made once a request may be written on it."""

    _endpoint: IStreamClientEndpoint

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect, and wait for the handshake.

        :raises NotConnected: (errback) it came to nothing.
        """
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: IProtocolFactory) -> IProtocol:
        try:
            guarding = _GuardingFactory(factory)  # type: ignore[no-untyped-call]
            connection = cast("GuardedConnection", await self._endpoint.connect(guarding))
            return await connection.opened
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a resolver, a stack or a handshake raises
            raise NotConnected(error) from None
