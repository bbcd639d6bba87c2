"""Requests of ours over HTTP: connections that speak only after their handshake, and bodies read up to a size."""

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
    ITransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer

_T = TypeVar("_T")


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
    :ivar closed_cleanly: whether the peer closed it in order.
    :ivar head: of the answer, as it came; L{None}: it is not kept.
    :ivar max_head_bytes: of an answer; set before a request is written.
    """

    transport: Any
    max_head_bytes: int
    head: bytearray | None = None

    def __init__(self, factory: WrappingFactory[Self], wrapped: IProtocol) -> None:
        super().__init__(factory, wrapped)
        self._is_open = self.closed_cleanly = False
        self._head_bytes_left: int | None = None
        self.opened: Deferred[IProtocol] = Deferred(lambda _: self.transport.abortConnection())

    def makeConnection(self, transport: ITransport) -> None:
        """Connect HTTP when the TLS handshake is done; without TLS at once."""
        if ISSLTransport.providedBy(transport):
            Protocol.makeConnection(self, transport)
        else:
            self._open(transport)

    def handshakeCompleted(self) -> None:
        """Note that the peer has proved who it is."""
        # What is being closed already, as for a certificate of another name, is nothing to write on.
        if not self.transport.disconnecting:
            self._open(self.transport)

    def _open(self, transport: ITransport) -> None:
        self._is_open = True
        super().makeConnection(transport)  # type: ignore[no-untyped-call]
        self.opened.callback(self.wrappedProtocol)

    def writeSequence(self, data: Any) -> None:
        """Send a request's head; what comes from now on is the head of its answer."""
        self._head_bytes_left = self.max_head_bytes
        super().writeSequence(data)  # type: ignore[no-untyped-call]

    def pauseProducing(self) -> None:
        """Pause; this is how Twisted's parser begins a body."""
        self._head_bytes_left = None
        self.transport.pauseProducing()

    def dataReceived(self, data: bytes) -> None:
        """Pass it on, and cut the connection off where the head does not end."""
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
    """Connects for HTTP; a connection counts as made once a request may be written on it.

    :param max_head_bytes: of an answer; a connection on which more comes is cut off.
    """

    _endpoint: IStreamClientEndpoint
    _max_head_bytes: int

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect, and wait for the handshake.

        :raises NotConnected: (errback) it came to nothing.
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
        except Exception as error:  # noqa: BLE001 - whatever a resolver, a stack or a handshake raises
            raise NotConnected(error) from None


@implementer(IBodyProducer)
@define
class BytesProducer:
    """Produces a request's body at once, where Twisted's producer of files asks the global reactor for turns."""

    content: bytes
    length: int = field(init=False)

    @length.default
    def _measure(self) -> int:
        return len(self.content)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self.content)
        return succeed(None)

    def stopProducing(self) -> None:
        """Nothing is left to stop."""

    def pauseProducing(self) -> None:
        """Nothing is left to pause."""

    def resumeProducing(self) -> None:
        """Nothing is left to resume."""


class BodyTooLong(Exception):
    """The body went past its cap."""


def is_response_done(reason: Failure) -> bool:
    """Tell whether a body has ended where its answer said."""
    return reason.check(ResponseDone) is not None


def read_body(
    response: IResponse,
    max_bytes: int,
    is_whole: Callable[[Failure], bool] = is_response_done,
    take: Callable[[bytes], bool] | None = None,
    consumer: IConsumer | None = None,
) -> Deferred[bytes]:
    """Read the whole body; cancelling ends the connection.

    :param is_whole: tells by why it ended whether it is all there.
    :param take: is given each piece instead, and tells whether that is enough, in which case no more is read; what it
        raises is raised.
    :param consumer: has the body wait where it cannot take more, as long as there is more of it.
    :raises BodyTooLong: it has more than C{max_bytes}.
    :raises Exception: whatever cut it off, a missing end included.
    """
    reader = _BodyReader(max_bytes, is_whole) if take is None else _BodyTaker(max_bytes, is_whole, take, consumer)
    response.deliverBody(reader)
    return reader.done


class EndedBody(Protocol):
    """A body whose connection can be ended before it is over."""

    def end_connection(self) -> None:
        """End it, whatever is still under way."""
        # A response's transport is a producer and no more.
        stop = getattr(self.transport, "stopProducing", None)
        if stop is not None:
            stop()


class _BodyReader(EndedBody):
    """Gathers the body; C{done} fires once, with all of it or with why not."""

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
        """Keep a piece."""
        self._parts.append(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.done.called:
            return
        if self._is_whole(reason):
            self.done.callback(b"".join(self._parts))
        else:
            self.done.errback(reason)


class _BodyTaker(_BodyReader):
    """Passes the body on, piece by piece."""

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
        """Let the consumer say when it takes no more, until the body is over."""
        if self._consumer is not None:
            self._consumer.registerProducer(cast("IPushProducer", self.transport), True)
            self.done.addBoth(self._release, self._consumer)

    @staticmethod
    def _release(result: _T, consumer: IConsumer) -> _T:
        consumer.unregisterProducer()
        return result

    def take(self, data: bytes) -> None:
        """Pass a piece on, and close the connection if that was enough."""
        try:
            is_enough = self._take(data)
        except Exception:  # noqa: BLE001 - it is the reader's, who waits for the body
            self.done.errback(Failure())
            self.end_connection()
        else:
            if is_enough:
                self.done.callback(b"")
                self.end_connection()
