"""Ends the waits that a manifest limits, at their time."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from aileron.runner.scheduling.timers import Callback, Timers
from aileron.values import Approval


@frozen(eq=False)
class Expiry:
    """Watches pending runs that may expire."""

    _timers: Timers
    _expire: Callback

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

    def stop(self) -> None:
        """Forget all alarms, of whatever kind."""
        self._timers.stop()
