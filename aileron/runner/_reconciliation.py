"""Ends runs on request: withdraws them before they begin, and settles those of unknown outcome."""

from __future__ import annotations

from attrs import define
from zope.interface import implementer

from aileron.errors import StateConflict
from aileron.interfaces import IReconciliation
from aileron.runner.approval.deadlines import Expiry
from aileron.runner.approval.decisions import Decisions
from aileron.runner.approval.gate import make_conflict
from aileron.runner.reconciliation.reconciler import Reconciler
from aileron.runner.reconciliation.recorder import explain_not_done
from aileron.runner.reconciliation.rerun import Rerun
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import transition
from aileron.runner.scheduling import KeyedLocks, Tasks
from aileron.values import JSON, Actor, Finding, Run, RunState, Transition

_WITHDRAWABLE = (RunState.PENDING, RunState.APPROVED, RunState.AWAITING_VAULT)


@define(eq=False)
class RunTermination:
    """Withdraws runs that have not begun, and settles those of unknown outcome; one change of a run at a time."""

    _runs: RunRepository
    _decisions: Decisions
    _expiry: Expiry
    _locks: KeyedLocks

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """Withdraw a run that has not begun, once no other change of it is under way."""
        return await self._locks.run(run_id, lambda: self._withdraw(run_id, actor, reason))

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Settle a run of unknown outcome, once no other change of it is under way."""
        return await self._locks.run(run_id, lambda: self._settle(run_id, happened, note, actor))

    async def _withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        run = await self._runs.run(run_id)
        if run.state not in _WITHDRAWABLE:
            raise make_conflict(run)
        if run.state is not RunState.PENDING:
            await self._decisions.give_up(run)
        event = self._runs.events.of_run("run.cancelled", run, actor, reason=reason)
        cancelled = await self._change(transition(run, RunState.CANCELLED, event.at, event, reason=reason))
        self._expiry.forget(run_id)
        return cancelled

    async def _settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        run = await self._runs.run(run_id)
        if run.state is not RunState.UNKNOWN:
            raise make_conflict(run)
        await self._decisions.give_up(run)
        event = self._runs.events.of_run("run.settled", run, actor, happened=happened, note=note)
        end = RunState.COMPLETED if happened else RunState.FAILED
        done: JSON = {step.step_id: step.output for step in await self._runs.table.steps(run_id)}
        result: JSON = {"output": None, "steps": done} if happened else None
        fault = None if happened else explain_not_done(run.fault)
        return await self._change(transition(run, end, event.at, event, reason=note, result=result, fault=fault))

    async def _change(self, change: Transition) -> Run:
        try:
            return await self._runs.apply(change)
        except StateConflict as conflict:
            raise make_conflict(conflict.present) from conflict


@implementer(IReconciliation)
@define(eq=False)
class ReconciliationService:
    """Settles what is in doubt by somebody's word, a look or a new run; no write ends with its caller."""

    _termination: RunTermination
    _reconciler: Reconciler
    _rerun: Rerun
    _tasks: Tasks

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Settle a run of unknown outcome; the write completes even if its caller goes away."""
        return await self._tasks.shielded(self._termination.settle(run_id, happened, note, actor))

    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Look up now whether a run happened; the lookup completes even if its caller goes away."""
        return await self._tasks.shielded(self._reconciler.find_out(run_id, actor))

    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        """Create a run that repeats one of unknown outcome; it is created even if its caller goes away."""
        return await self._tasks.shielded(self._rerun.run_again(run_id, note, actor))
