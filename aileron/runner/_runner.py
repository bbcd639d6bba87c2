"""Starts, follows and stops the chokepoint: every invocation enters here, and nothing else reaches a connector."""

from __future__ import annotations

from attrs import define, evolve
from twisted.logger import Logger

from aileron.errors import StateConflict, StoreUnavailable
from aileron.runner._decisions import DecisionService
from aileron.runner._limits import LimitService
from aileron.runner._rollback import RollbackDetector
from aileron.runner._scheduler import RunScheduler
from aileron.runner._submission import Submission
from aileron.runner._trust import TrustService
from aileron.runner.decisions import UNUSABLE, Decisions
from aileron.runner.grants import GrantService
from aileron.runner.limits import Limits
from aileron.runner.previews import Previews
from aileron.runner.reconciler import Reconciler, ReconciliationService
from aileron.runner.requests import Expiry
from aileron.runner.runs import RunRepository, transition
from aileron.runner.scheduling import Tasks
from aileron.values import Fault, Run, RunQuery, RunState

_log = Logger()
_PENDING = RunQuery(states=(RunState.PENDING,), limit=1000)
_CRASHED = Fault(
    "outcome_unknown", "The daemon ended while this was being done: it may have happened. Please look, and settle it."
)
_NOT_ASKED = "The run says that nobody had to be asked, and somebody was."


@define(eq=False)
class Recovery:
    """Takes up what an earlier life left, and what waited for the vault.

    :ivar limits: what keeps runs from beginning.
    :ivar previews: what is shown of services' sides.
    :ivar rollbacks: finds whether the record or the vault was put back.
    """

    _runs: RunRepository
    _scheduler: RunScheduler
    _expiry: Expiry
    _decisions: Decisions
    limits: Limits
    _reconciler: Reconciler
    previews: Previews
    rollbacks: RollbackDetector

    async def start(self) -> None:
        """Take up what an earlier life left.

        :raises StoreUnavailable: it cannot be read.
        """
        await self.limits.learn()
        await self.rollbacks.check()
        await self._reconciler.take_up()
        await self._recover()

    def stop(self) -> None:
        """Expire and look for nothing more.  Twice is safe."""
        self._expiry.stop()
        self._reconciler.stop()

    async def resume(self) -> bool:
        """Go on with what met a vault whose file was gone or another, and is there again; C{False}: not yet."""
        try:
            await self.rollbacks.check()
            await self._decisions.settle_up()
            await self._take_up_waiting()
            await self.previews.take_up()
        except (StoreUnavailable, *UNUSABLE):
            _log.warn("what waits for the vault cannot be taken up yet")
            return False
        return True

    @property
    def owing(self) -> bool:
        """True if L{settle_up} has something to do."""
        return self.rollbacks.moved or self._decisions.owing

    async def settle_up(self) -> None:
        """Write to vault and record what could not be written before, and how far the vault has come."""
        await self._decisions.settle_up()
        await self.rollbacks.note()

    async def _take_up_waiting(self) -> None:
        waiting: RunQuery | None = RunQuery(states=(RunState.AWAITING_VAULT,), limit=1000, oldest_first=True)
        while waiting is not None:
            page = await self._runs.table.list(waiting)
            for run in page.items:
                self._scheduler.start(run)
            waiting = None if page.cursor is None else evolve(waiting, cursor=page.cursor)

    async def _recover(self) -> None:
        """Take every unfinished run to where it is safe, oldest first, and start none that may have happened."""
        asked = await self._watch_all()
        for run in await self._runs.table.unfinished():
            try:
                await self._take_up(run, asked)
            except StateConflict:
                _log.warn("run {run} moved while it was being recovered", run=run.id)

    async def _watch_all(self) -> frozenset[str]:
        """Mind what waits for a decision, page by page: thousands may.

        :return: the runs that do.
        """
        asked: set[str] = set()
        query = _PENDING
        while True:
            page = await self._runs.table.approvals(query)
            for approval in page.items:
                self._expiry.watch(approval.run.id, approval.expires_at)
                asked.add(approval.run.id)
            if page.cursor is None:
                return frozenset(asked)
            query = evolve(query, cursor=page.cursor)

    async def _take_up(self, run: Run, asked: frozenset[str]) -> None:
        if run.state is RunState.EXECUTING:
            await self._in_doubt(run)
        elif run.state is RunState.PENDING:
            if run.id not in asked:  # one damaged row must not keep the daemon from the others
                _log.error("run {run} is gated and nobody was asked; it stays as it is", run=run.id)
        elif run.gated and run.state is not RunState.RECEIVED:
            self._scheduler.start(run)  # approved, or waiting for the vault
        else:
            await self._give_up(run)

    async def _in_doubt(self, run: Run) -> None:
        """Tell whether it happened, nobody here can say: a person settles it.

        Its decision goes first, whether its row says that it took one or not.
        """
        await self._decisions.give_up(run)
        done = [step.step_id for step in await self._runs.table.steps(run.id)]
        fault, now = _CRASHED.with_details(steps_done=done), self._runs.events.now()
        begun = [attempt for attempt in await self._runs.table.attempts(run.id) if attempt.state == "started"]
        attempts = tuple(evolve(attempt, state="unknown", ended_at=now, fault=fault) for attempt in begun)
        event = self._runs.events.of_run("execution.unknown", run, fault=fault)
        await self._runs.apply(transition(run, RunState.UNKNOWN, now, event, fault=fault, attempts=attempts))

    async def _give_up(self, run: Run) -> None:
        """Give up a run that had not begun: whoever asked is told that nothing was sent, and may ask again.

        One that the operator was asked about never stands like this by itself.
        """
        await self._decisions.give_up(run)
        asked = await self._runs.table.approval(run.id) is not None
        if run.state is RunState.RECEIVED:
            event = self._runs.events.of_run("run.approved", run)
            run = await self._runs.apply(transition(run, RunState.APPROVED, self._runs.events.now(), event))
        reason = "The daemon ended before it began; nothing was sent."
        found = (self._runs.events.of_run("tamper.detected", run, row="runs", found=_NOT_ASKED),) if asked else ()
        event = self._runs.events.of_run("run.cancelled", run, reason=reason)
        await self._runs.apply(
            transition(run, RunState.CANCELLED, self._runs.events.now(), *found, event, reason=reason)
        )


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
