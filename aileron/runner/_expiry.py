"""Ends the waits that a manifest limits, at their time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.values import Approval

_log = Logger()
_LONGEST_SLEEP_SECONDS = 3600.0  # then the wall clock is asked again: it may have been set
_AGAIN_SECONDS = 5.0


@define(eq=False)
class Expiry:
    """One alarm a pending run that may expire."""

    _clock: IReactorTime
    _expire: Callable[[str], Awaitable[None]]
    _alarms: dict[str, IDelayedCall] = field(factory=dict)

    def watch(self, run_id: str, expires_at: datetime | None) -> None:
        """Expire the run at C{expires_at}, if it has not been decided by then; L{None}: it never expires."""
        self.forget(run_id)
        if expires_at is None:
            return
        left = expires_at.timestamp() - self._clock.seconds()
        self._alarms[run_id] = self._clock.callLater(
            min(max(0.0, left), _LONGEST_SLEEP_SECONDS), self._ring, run_id, expires_at
        )

    def mind(self, approval: Approval) -> None:
        """As L{watch}, of an approval."""
        self.watch(approval.run.id, approval.expires_at)

    def forget(self, run_id: str) -> None:
        """It is decided.  Twice is safe."""
        alarm = self._alarms.pop(run_id, None)
        if alarm is not None and alarm.active():
            alarm.cancel()

    def stop(self) -> None:
        """Forget all."""
        for run_id in list(self._alarms):
            self.forget(run_id)

    def _ring(self, run_id: str, expires_at: datetime) -> None:
        del self._alarms[run_id]
        if expires_at.timestamp() > self._clock.seconds():
            self.watch(run_id, expires_at)
            return
        Deferred.fromCoroutine(self._go(run_id)).addErrback(self._failed, run_id, expires_at)

    async def _go(self, run_id: str) -> None:
        await self._expire(run_id)

    def _failed(self, failure: Failure, run_id: str, expires_at: datetime) -> None:
        """It still waits, and nobody may decide it any more: so this is tried until it is done."""
        _log.failure("expiring {run}", failure, run=run_id)
        self._alarms[run_id] = self._clock.callLater(_AGAIN_SECONDS, self._ring, run_id, expires_at)
