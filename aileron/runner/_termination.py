"""Withdraws runs before they begin, and settles those of which nobody knows what came of them."""

from __future__ import annotations

from attrs import define

from aileron.errors import Conflict, StateConflict
from aileron.runner.approval.deadlines import Expiry
from aileron.runner.approval.decisions import Decisions
from aileron.runner.reconciliation.recorder import explain_not_done
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import transition
from aileron.runner.scheduling import KeyedLocks
from aileron.values import JSON, Actor, Run, RunState, Transition

_WITHDRAWABLE = (RunState.PENDING, RunState.APPROVED, RunState.AWAITING_VAULT)


@define(eq=False)
class RunTermination:
    """Withdraws and settles runs, one at a time for each."""

    _runs: RunRepository
    _decisions: Decisions
    _expiry: Expiry
    _locks: KeyedLocks

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """See L{ISubmission.withdraw}."""
        return await self._locks.run(run_id, lambda: self._withdraw(run_id, actor, reason))

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """See L{IGovernance.settle}."""
        return await self._locks.run(run_id, lambda: self._settle(run_id, happened, note, actor))

    async def _withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        run = await self._runs.run(run_id)
        if run.state not in _WITHDRAWABLE:
            raise _in_another_state(run)
        if run.state is not RunState.PENDING:
            await self._decisions.give_up(run)
        event = self._runs.events.of_run("run.cancelled", run, actor, reason=reason)
        cancelled = await self._change(
            transition(run, RunState.CANCELLED, self._runs.events.now(), event, reason=reason)
        )
        self._expiry.forget(run_id)
        return cancelled

    async def _settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        run = await self._runs.run(run_id)
        if run.state is not RunState.UNKNOWN:
            raise _in_another_state(run)
        await self._decisions.give_up(run)
        event = self._runs.events.of_run("run.settled", run, actor, happened=happened, note=note)
        end = RunState.COMPLETED if happened else RunState.FAILED
        done: JSON = {step.step_id: step.output for step in await self._runs.table.steps(run_id)}
        result: JSON = {"output": None, "steps": done} if happened else None
        fault = None if happened else explain_not_done(run.fault)
        return await self._change(
            transition(run, end, self._runs.events.now(), event, reason=note, result=result, fault=fault)
        )

    async def _change(self, change: Transition) -> Run:
        try:
            return await self._runs.apply(change)
        except StateConflict as conflict:
            raise _in_another_state(conflict.present) from conflict


def _in_another_state(run: Run) -> Conflict:
    return Conflict(f"It is {run.state.value} already.", {"state": run.state.value})
