"""The bodies of requests and answers: one that is sent at once, one that is read up to a cap, a stream of events."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IConsumer, IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer

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
        """It is over."""
        if self._silence is not None and self._silence.active():
            self._silence.cancel()
        if not self.ended.called and not self._cancelled:
            self.ended.callback(None)

    def _cancel(self) -> None:
        self._cancelled = True
        self.end_connection()
