"""Outgoing HTTP requests: connections that send only after their handshake, and bodies read up to a maximum size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import (
    IConsumer,
    IHandshakeListener,
    IProtocol,
    IProtocolFactory,
    IPushProducer,
    ISSLTransport,
    IStreamClientEndpoint,
    ITCPTransport,
    ITransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer

_T = TypeVar("_T")


def send_at_once(transport: object) -> None:
    """Set a TCP connection to send small pieces at once. Otherwise each piece of a TLS handshake waits for the last."""
    if ITCPTransport.providedBy(transport):
        transport.setTcpNoDelay(True)


class NotConnected(Exception):
    """Raised if no connection was made or its TLS handshake failed. Then nothing was sent, so a retry is safe.

    :ivar reason: the cause.
    """

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__(str(reason))
        self.reason = reason


@implementer(IHandshakeListener)
class GuardedConnection(ProtocolWrapper):
    """A wrapper of an HTTP client's protocol that delays requests until the TLS handshake is done.

    It also limits the size of the response head.

    :ivar opened: fires with the HTTP protocol when a request may be written.
    :ivar closed_cleanly: whether the peer closed the connection in an orderly way.
    :ivar head: the response head as received, or None if it is not recorded.
    :ivar user: the request that uses the connection now, or None.
    :ivar max_head_bytes: the maximum size of a response head. Set before a request is written.
    """

    transport: Any
    max_head_bytes: int
    head: bytearray | None = None
    user: object = None

    def __init__(self, factory: WrappingFactory[Self], wrapped: IProtocol) -> None:
        super().__init__(factory, wrapped)
        self._is_open = self.closed_cleanly = False
        self._head_bytes_left: int | None = None
        self.opened: Deferred[IProtocol] = Deferred(lambda _: self.transport.abortConnection())

    def makeConnection(self, transport: ITransport) -> None:
        """Start the HTTP protocol after the TLS handshake, or at once without TLS."""
        send_at_once(transport)
        if ISSLTransport.providedBy(transport):
            Protocol.makeConnection(self, transport)
        else:
            self._open(transport)

    def handshakeCompleted(self) -> None:
        """Start the HTTP protocol, because the peer's certificate is verified."""
        # A connection that is being closed, as for a certificate of another name, cannot be used.
        if not self.transport.disconnecting:
            self._open(self.transport)

    def _open(self, transport: ITransport) -> None:
        self._is_open = True
        super().makeConnection(transport)  # type: ignore[no-untyped-call]
        self.opened.callback(self.wrappedProtocol)

    def writeSequence(self, data: Any) -> None:
        """Send a request's head and start counting the bytes of the response head."""
        self._head_bytes_left = self.max_head_bytes
        super().writeSequence(data)  # type: ignore[no-untyped-call]

    def pauseProducing(self) -> None:
        """Pause the transport and stop counting head bytes.  Twisted's parser calls this at the start of a body."""
        self._head_bytes_left = None
        self.transport.pauseProducing()

    def dataReceived(self, data: bytes) -> None:
        """Pass the bytes to HTTP, and abort the connection if the head is too long."""
        if self._head_bytes_left is not None:
            self._head_bytes_left -= len(data)
            if self.head is not None:
                self.head += data
        super().dataReceived(data)  # type: ignore[no-untyped-call]
        if self._head_bytes_left is not None and self._head_bytes_left < 0:
            self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass the loss on to the wrapped protocol, or to the caller that waits for the connection."""
        self.closed_cleanly = reason.check(ConnectionDone) is not None
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
    """An endpoint for HTTP whose connections are ready when a request may be written.

    :param max_head_bytes: the maximum size of a response head. A connection with a larger head is aborted.
    """

    _endpoint: IStreamClientEndpoint
    _max_head_bytes: int

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect and wait for the handshake.

        :raises NotConnected: if the connection or the handshake failed. The Deferred fails with it.
        """
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: IProtocolFactory) -> IProtocol:
        try:
            guarding = _GuardingFactory(factory)  # type: ignore[no-untyped-call]
            connection = cast("GuardedConnection", await self._endpoint.connect(guarding))
            connection.max_head_bytes = self._max_head_bytes
            return await connection.opened
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a resolver, a stack or a handshake may raise any exception
            raise NotConnected(error) from None


@implementer(IBodyProducer)
@define
class BytesProducer:
    """A producer that writes a request's body at once. Twisted's file producer needs the global reactor."""

    content: bytes
    length: int = field(init=False)

    @length.default
    def _measure(self) -> int:
        return len(self.content)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self.content)
        return succeed(None)

    def stopProducing(self) -> None:
        """Do nothing: the body is already written."""

    def pauseProducing(self) -> None:
        """Do nothing: the body is already written."""

    def resumeProducing(self) -> None:
        """Do nothing: the body is already written."""


class BodyTooLong(Exception):
    """Raised if a body exceeds its maximum size."""


def is_response_done(reason: Failure) -> bool:
    """Return whether a response body ended as the response's headers announced, and not too early."""
    return reason.check(ResponseDone) is not None


def read_body(
    response: IResponse,
    max_bytes: int,
    is_whole: Callable[[Failure], bool] = is_response_done,
    take: Callable[[bytes], bool] | None = None,
    consumer: IConsumer | None = None,
) -> Deferred[bytes]:
    """Read the complete body.  Cancelling ends the connection.

    :param is_whole: returns whether the body is complete, given the reason of its end.
    :param take: called with each piece instead of collecting it. Returns True to stop reading. Its exceptions are
        raised.
    :param consumer: pauses and resumes the body.
    :raises BodyTooLong: if the body has more than C{max_bytes}.
    :raises Exception: if the connection was lost or the body is incomplete.
    """
    reader = _BodyReader(max_bytes, is_whole) if take is None else _BodyTaker(max_bytes, is_whole, take, consumer)
    response.deliverBody(reader)
    return reader.done


class EndedBody(Protocol):
    """A body reader whose connection can be ended before the body is complete."""

    def end_connection(self) -> None:
        """End the connection, even if data is still in transit."""
        # A response's transport is only a producer.
        stop = getattr(self.transport, "stopProducing", None)
        if stop is not None:
            stop()


class _BodyReader(EndedBody):
    """A reader that collects a body.  C{done} fires once, with the body or the failure."""

    def __init__(self, max_bytes: int, is_whole: Callable[[Failure], bool]) -> None:
        self._left = max_bytes
        self._is_whole = is_whole
        self._parts: list[bytes] = []
        self.done: Deferred[bytes] = Deferred(lambda _: self.end_connection())

    def dataReceived(self, data: bytes) -> None:
        self._left -= len(data)
        if self.done.called:
            return
        if self._left >= 0:
            self.take(data)
        else:
            self.done.errback(BodyTooLong())
            self.end_connection()

    def take(self, data: bytes) -> None:
        """Store a piece of the body."""
        self._parts.append(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.done.called:
            return
        if self._is_whole(reason):
            self.done.callback(b"".join(self._parts))
        else:
            self.done.errback(reason)


class _BodyTaker(_BodyReader):
    """A reader that passes a body on in pieces."""

    def __init__(
        self,
        max_bytes: int,
        is_whole: Callable[[Failure], bool],
        take: Callable[[bytes], bool],
        consumer: IConsumer | None,
    ) -> None:
        super().__init__(max_bytes, is_whole)
        self._take, self._consumer = take, consumer

    def connectionMade(self) -> None:
        """Register the body as producer of the consumer until the body ends."""
        if self._consumer is not None:
            self._consumer.registerProducer(cast("IPushProducer", self.transport), True)
            self.done.addBoth(self._release, self._consumer)

    @staticmethod
    def _release(result: _T, consumer: IConsumer) -> _T:
        consumer.unregisterProducer()
        return result

    def take(self, data: bytes) -> None:
        """Pass a piece to the callback. Close the connection if the callback returns True or raises an exception.

        Then C{done}, the result of the reader, fires or fails.
        """
        try:
            is_enough = self._take(data)
        except Exception:  # noqa: BLE001 - the exception is the reader's and is passed to it
            self.done.errback(Failure())
            self.end_connection()
        else:
            if is_enough:
                self.done.callback(b"")
                self.end_connection()
