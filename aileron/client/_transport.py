"""The transport of the client: who is let through, and how bodies are sent and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import (
    IConsumer,
    IDelayedCall,
    IHandshakeListener,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
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


SILENCE_SECONDS = 45.0
"""Longer than the daemon is ever silent on a stream of events."""

_EVENT_END = b"\n\n"
_EVENT_FIELD = b"event:"
_MAX_EVENT_BYTES = 64 * 1024


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


def read_body(response: IResponse, max_bytes: int) -> Deferred[bytes]:
    """Read the whole body; cancelling ends the connection.

    :raises BodyTooLong: it has more than C{max_bytes}.
    :raises Exception: whatever cut it off, a missing end included.
    """
    reader = _BodyReader(max_bytes)
    response.deliverBody(reader)
    return reader.done


class _EndedBody(Protocol):
    """A body whose connection can be ended before it is over."""

    def end_connection(self) -> None:
        """End it, whatever is still under way."""
        # A response's transport is a producer and no more.
        stop = getattr(self.transport, "stopProducing", None)
        if stop is not None:
            stop()


class _BodyReader(_EndedBody):
    """Gathers the body; C{done} fires once, with all of it or with why not."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._parts: list[bytes] = []
        self.done: Deferred[bytes] = Deferred(lambda _: self.end_connection())

    def dataReceived(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left >= 0:
            self._parts.append(data)
        elif not self.done.called:
            self.done.errback(BodyTooLong())
            self.end_connection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.done.called:
            return
        if reason.check(ResponseDone):
            self.done.callback(b"".join(self._parts))
        else:
            self.done.errback(reason)


class EventStream(_EndedBody):
    """Reads server-sent events and calls C{on_event} for each one; the caller then fetches what is new.

    :param on_event: called for each event, not for what only shows that the daemon is still there.
    :ivar ended: fires once, when the stream is over for whatever reason; cancelling it ends the stream.
    """

    def __init__(self, clock: IReactorTime, on_event: Callable[[], None]) -> None:
        self._on_event = on_event
        self._clock = clock
        self._rest = b""
        self._silence: IDelayedCall | None = None
        self._cancelled = False
        self.ended: Deferred[None] = Deferred(lambda _: self._cancel())

    def connectionMade(self) -> None:
        """Wait for what comes, but not for ever."""
        self._silence = self._clock.callLater(SILENCE_SECONDS, self.end_connection)

    def dataReceived(self, data: bytes) -> None:
        """Tell of each whole event."""
        if self._silence is not None and self._silence.active():
            self._silence.reset(SILENCE_SECONDS)
        *events, self._rest = (self._rest + data).split(_EVENT_END)
        if len(self._rest) > _MAX_EVENT_BYTES:
            self.end_connection()
        for event in events:
            if any(line.startswith(_EVENT_FIELD) for line in event.split(b"\n")):
                self._on_event()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note that it is over."""
        if self._silence is not None and self._silence.active():
            self._silence.cancel()
        if not self.ended.called and not self._cancelled:
            self.ended.callback(None)

    def _cancel(self) -> None:
        self._cancelled = True
        self.end_connection()
