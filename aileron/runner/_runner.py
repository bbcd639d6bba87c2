"""The chokepoint: every invocation enters here, and nothing else reaches a connector."""

from __future__ import annotations

from attrs import define

from aileron.runner.limits.admission import EffectGate
from aileron.runner.runs.offerings import Offerings
from aileron.runner.scheduling import Tasks

from ._decisions import DecisionService
from ._governance import GovernanceService
from ._recovery import Recovery
from ._submission import Submission


@define(eq=False)
class Runner:
    """Starts, follows and stops what takes calls, decisions and the operator's other orders.

    Built by L{aileron.runner.build}.

    :ivar submission: what agents reach of it.
    :ivar decisions: where what waits is decided.
    :ivar governance: what else the operator reaches of it.
    """

    submission: Submission
    decisions: DecisionService
    governance: GovernanceService
    _recovery: Recovery
    _offerings: Offerings
    _effects: EffectGate
    _tasks: Tasks

    async def start(self) -> None:
        """Take up what an earlier life left, before anybody is served."""
        self._offerings.refresh()
        await self._recovery.start()
        self._effects.could_act = self._recovery.rollbacks.compared
        self._tasks.start("previews that were missed", self._recovery.previews.take_up())

    def look(self) -> None:
        """Notice changed files and a changed vault; the daemon's timer calls it."""
        self._offerings.refresh()
        could, can = self._effects.could_act, self._effects.may_act() and self._recovery.rollbacks.comparable
        self._effects.could_act = can
        if can:
            self._effects.pauses.settle_up()
        if can and not could:
            if not self._tasks.start("what waits for the vault", self._resume()):
                self._effects.missed()
        elif self._recovery.owing:
            self._tasks.start("how far the vault has come", self._recovery.settle_up())

    async def _resume(self) -> None:
        if not await self._recovery.resume():
            self._effects.missed()

    async def stop(self, seconds: float) -> None:
        """Start nothing more; let effects under way finish within C{seconds}, else record them as in doubt."""
        self._recovery.stop()
        await self._tasks.drain(seconds)
        await self._recovery.rollbacks.note()
