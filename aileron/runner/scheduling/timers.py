"""Rings for a run at its time, by the wall clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeAlias

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

_log = Logger()
_LONGEST_SLEEP_SECONDS = 3600.0  # then the wall clock is asked again: it may have been set
_AGAIN_SECONDS = 5.0

Callback: TypeAlias = Callable[[str], Awaitable[None]]
"""What is to be done with the run of that id."""


@define(eq=False)
class Timers:
    """At most one alarm a run; whatever a ring fails with, it is rung again until it has done its work."""

    _clock: IReactorTime
    _set: dict[str, IDelayedCall] = field(factory=dict)

    def watch(self, run_id: str, at: datetime, ring: Callback) -> None:
        """Callback at C{at}, and never before, in the place of an earlier alarm of the run."""
        self.forget(run_id)
        left = at.timestamp() - self._clock.seconds()
        self._set_one(min(max(0.0, left), _LONGEST_SLEEP_SECONDS), run_id, at, ring)

    def forget(self, run_id: str) -> None:
        """Callback no more for the run.  Twice is safe."""
        alarm = self._set.pop(run_id, None)
        if alarm is not None and alarm.active():
            alarm.cancel()

    def stop(self) -> None:
        """Forget all."""
        for run_id in list(self._set):
            self.forget(run_id)

    def _set_one(self, seconds: float, run_id: str, at: datetime, ring: Callback) -> None:
        self._set[run_id] = self._clock.callLater(seconds, self._wake, run_id, at, ring)

    def _wake(self, run_id: str, at: datetime, ring: Callback) -> None:
        del self._set[run_id]
        if at.timestamp() > self._clock.seconds():
            self.watch(run_id, at, ring)
            return
        Deferred.fromCoroutine(self._go(run_id, ring)).addErrback(self._failed, run_id, at, ring)

    async def _go(self, run_id: str, ring: Callback) -> None:
        await ring(run_id)

    def _failed(self, failure: Failure, run_id: str, at: datetime, ring: Callback) -> None:
        """It still waits, and nothing else will wake it, but for an alarm that was set meanwhile."""
        _log.failure("the alarm of run {run}", failure, run=run_id)
        if run_id not in self._set:
            self._set_one(_AGAIN_SECONDS, run_id, at, ring)
