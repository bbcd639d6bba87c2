"""Server-sent events as they come: only that there are some, for whoever asks then what is new."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

SILENCE_SECONDS = 45.0
"""Longer than the daemon is ever silent on such a stream."""

_END = b"\n\n"
_EVENT = b"event:"
_MOST_REST = 64 * 1024


class News(Protocol):
    """The body of a stream; C{ended} fires once, when it is over for whatever reason.

    :param heard: called for each event, not for what only shows that the daemon is still there.
    """

    def __init__(self, clock: IReactorTime, heard: Callable[[], None]) -> None:
        self._heard = heard
        self._clock = clock
        self._rest = b""
        self._silence: IDelayedCall | None = None
        self._given_up = False
        self.ended: Deferred[None] = Deferred(lambda _: self._give_up())

    def connectionMade(self) -> None:
        """Wait for what comes, but not for ever."""
        self._silence = self._clock.callLater(SILENCE_SECONDS, self._hang_up)

    def dataReceived(self, data: bytes) -> None:
        """Tell of each whole event."""
        if self._silence is not None and self._silence.active():
            self._silence.reset(SILENCE_SECONDS)
        *events, self._rest = (self._rest + data).split(_END)
        if len(self._rest) > _MOST_REST:
            self._hang_up()
        for event in events:
            if any(line.startswith(_EVENT) for line in event.split(b"\n")):
                self._heard()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """It is over."""
        if self._silence is not None and self._silence.active():
            self._silence.cancel()
        if not self.ended.called and not self._given_up:
            self.ended.callback(None)

    def _give_up(self) -> None:
        self._given_up = True
        self._hang_up()

    def _hang_up(self) -> None:
        # What is left of a body in memory has a transport that can only stop.
        transport = self.transport
        abort = getattr(transport, "abortConnection", None) or getattr(transport, "stopProducing", None)
        if abort is not None:
            abort()
