"""Ends waits that a manifest limits, and holds approved runs back until they may begin.

An approved run waits because it was put off, or because it can still be taken back.  Two clocks are asked.  When a run
may begin is told by the wall clock, and stands under the decision's mark.  The seconds in which it can be taken back
must have passed by a clock that nobody sets as well, as far as this life of the daemon has seen them: a wall clock that
is set forward takes nothing from them.  A wall clock that is set back makes a run wait longer, never less.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, field, frozen

from aileron.errors import StateConflict
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import EventFactory, transition
from aileron.runner.scheduling import Callback, Timers
from aileron.values import Approval, Run, RunState


@frozen(eq=False)
class Expiry:
    """Watches pending runs that may expire."""

    _timers: Timers
    _runs: RunRepository

    def watch(self, run_id: str, expires_at: datetime | None) -> None:
        """Expire the run at C{expires_at}, if it has not been decided by then; L{None}: it never expires."""
        if expires_at is None:
            self._timers.forget(run_id)
        else:
            self._timers.watch(run_id, expires_at, self._expire)

    def mind(self, approval: Approval) -> None:
        """As L{watch}, of an approval."""
        self.watch(approval.run.id, approval.expires_at)

    def forget(self, run_id: str) -> None:
        """It is decided, or taken back.  Twice is safe."""
        self._timers.forget(run_id)

    async def _expire(self, run_id: str) -> None:
        """End a wait that the manifest limits, unless it has ended by itself."""
        run = await self._runs.run(run_id)
        if run.state is RunState.PENDING:
            event = self._runs.events.of_run("approval.expired", run)
            with suppress(StateConflict):  # decided or withdrawn at the last moment
                await self._runs.apply(transition(run, RunState.EXPIRED, event.at, event))

    def stop(self) -> None:
        """Forget all alarms, of whatever kind."""
        self._timers.stop()


@define(eq=False)
class UndoWindow:
    """Holds approved runs back until they may begin.

    :param monotonic: seconds of a monotonic clock.
    """

    _timers: Timers
    _events: EventFactory
    _monotonic: Callable[[], float]
    _held: dict[str, float] = field(factory=dict, init=False)  # by run, until when on the monotonic clock

    def hold(self, run_id: str, seconds: float) -> None:
        """An approved run can be taken back for so long from now on."""
        now = self._monotonic()
        self._held = {held: until for held, until in self._held.items() if until > now}
        if seconds > 0:
            self._held[run_id] = now + seconds

    def waits(self, run: Run, ring: Callback) -> bool:
        """Return whether an approved run must not begin yet; if so, C{ring} is called when its time has come."""
        at = self._begins(run)
        if at <= self._events.now():
            return False
        self._timers.watch(run.id, at, ring)
        return True

    def wait(self, run_id: str, at: datetime, ring: Callback) -> None:
        """Callback at C{at}, whatever the run's row says."""
        self._timers.watch(run_id, at, ring)

    def _begins(self, run: Run) -> datetime:
        """No sooner than this, by the wall clock as it goes now."""
        now = self._events.now()
        left = max(0.0, self._held.get(run.id, 0.0) - self._monotonic())
        return max(run.start_after or now, now + timedelta(seconds=left))
