"""Holds on to a call through the daemon's restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.client import DaemonUnreachable

T = TypeVar("T")

GRACE_SECONDS = 3.0
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0


class Attempts:
    """All attempts of one call, which together have one wait.

    :ivar cut_off: whether one of them may have arrived and got no answer.
    """

    def __init__(self, clock: IReactorTime, wait_seconds: float) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._began_at = clock.seconds()
        self.cut_off = False

    async def answer(self, ask: Callable[[float], Awaitable[T]]) -> T:
        """Ask until an answer comes: a daemon that went away meanwhile has the whole wait to come back.

        Whoever proves not to be the daemon is not asked again, unless that was it before.

        :param ask: is told how much of the wait is left, in seconds.
        :raises DaemonUnreachable: it did not come back, or was never there.
        """
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return await ask(max(0.0, self._wait_seconds - self._passed()))
            except DaemonUnreachable as lost:
                self.cut_off = self.cut_off or lost.sent
                if self._passed() + pause > self._patience(lost):
                    raise evolve(lost, sent=self.cut_off) from None
            await deferLater(self._clock, pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _patience(self, lost: DaemonUnreachable) -> float:
        if self.cut_off:
            return max(self._wait_seconds, GRACE_SECONDS)
        return 0.0 if lost.misdirected else GRACE_SECONDS

    def _passed(self) -> float:
        return self._clock.seconds() - self._began_at
