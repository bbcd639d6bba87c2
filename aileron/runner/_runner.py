"""The chokepoint: every invocation enters here, and nothing else reaches a connector."""

from __future__ import annotations

from attrs import define

from aileron.runner._decisions import DecisionService
from aileron.runner._limits import LimitService
from aileron.runner._reconciliation import ReconciliationService
from aileron.runner._recovery import Recovery
from aileron.runner._submission import Submission
from aileron.runner._trust import TrustService
from aileron.runner.grants import GrantService
from aileron.runner.scheduling import Tasks


@define(eq=False)
class Runner:
    """Starts, follows and stops what takes calls, decisions and the operator's other orders.

    Built by L{aileron.runner.build}.

    :ivar submission: what agents reach of it.
    :ivar decisions: where what waits is decided.
    :ivar trust: where the operator says what may be run.
    :ivar grants: where standing grants are seen and taken back.
    :ivar limits: where runs are paused, capped and forgiven.
    :ivar reconciliation: where what is in doubt is settled.
    """

    submission: Submission
    decisions: DecisionService
    trust: TrustService
    grants: GrantService
    limits: LimitService
    reconciliation: ReconciliationService
    _recovery: Recovery
    _tasks: Tasks

    async def start(self) -> None:
        """Take up what an earlier life left, before anybody is served."""
        self.submission.planner.offerings.refresh()
        await self._recovery.start()
        self._recovery.limits.effects.could_act = self._recovery.rollbacks.compared
        self._tasks.start("previews that were missed", self._recovery.previews.take_up())

    def look(self) -> None:
        """Notice changed files and a changed vault; the daemon's timer calls it."""
        self.submission.planner.offerings.refresh()
        effects = self._recovery.limits.effects
        could, can = effects.could_act, effects.may_act() and self._recovery.rollbacks.comparable
        effects.could_act = can
        if can:
            effects.pauses.settle_up()
        if can and not could:
            if not self._tasks.start("what waits for the vault", self._resume()):
                effects.missed()
        elif self._recovery.owing:
            self._tasks.start("how far the vault has come", self._recovery.settle_up())

    async def _resume(self) -> None:
        if not await self._recovery.resume():
            self._recovery.limits.effects.missed()

    async def stop(self, seconds: float) -> None:
        """Start nothing more; let effects under way finish within C{seconds}, else record them as in doubt."""
        self._recovery.stop()
        await self._tasks.drain(seconds)
        await self._recovery.rollbacks.note()
