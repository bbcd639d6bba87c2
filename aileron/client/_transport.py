"""Reads a stream of events from the daemon."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from aileron.outgoing import EndedBody

SILENCE_SECONDS = 45.0
"""Longer than the daemon is ever silent on a stream of events."""

_EVENT_END = b"\n\n"
_EVENT_FIELD = b"event:"
_MAX_EVENT_BYTES = 64 * 1024


class EventStream(EndedBody):
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
