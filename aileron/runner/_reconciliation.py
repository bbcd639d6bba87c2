"""Settles runs of unknown outcome: by somebody's word, by a look, or by a new run that is always asked about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen
from zope.interface import implementer

from aileron.errors import Conflict
from aileron.interfaces import IReconciliation
from aileron.manifests import check_arguments
from aileron.runner.decisions import Decisions
from aileron.runner.outcomes import OutcomeRecorder, explain_not_done, require_unchanged
from aileron.runner.plan import Plan, Planner
from aileron.runner.reconciler import Reconciler
from aileron.runner.runs import RunRepository, make_conflict, transition
from aileron.runner.scheduling import KeyedLocks, Tasks, shielded
from aileron.values import JSON, READ, Actor, Fault, Finding, Run, RunQuery, RunState, Transition

_OPEN = frozenset(state for state in RunState if not state.settled) | {RunState.UNKNOWN}


@implementer(IReconciliation)
@frozen(eq=False)
class ReconciliationService:
    """Settles what is in doubt by somebody's word, a look or a new run; one change of a run at a time.

    :param put_up: puts a new run up for decision.
    """

    _runs: RunRepository
    _planner: Planner
    _put_up: Callable[[Run, Plan, Actor], Awaitable[Run]]
    _decisions: Decisions
    _recorder: OutcomeRecorder
    _reconciler: Reconciler
    _tasks: Tasks
    _locks: KeyedLocks

    @shielded
    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Settle a run of unknown outcome; the write completes even if its caller goes away."""
        return await self._locks.run(run_id, lambda: self._settle(run_id, happened, note, actor))

    @shielded
    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Look up now whether a run happened; the lookup completes even if its caller goes away."""
        return await self._reconciler.find_out(run_id, actor)

    @shielded
    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        """Create a run that repeats one of unknown outcome; it is created even if its caller goes away."""
        return await self._locks.run(run_id, lambda: self._run_again(run_id, note, actor))

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
        return await self._runs.apply_or_refuse(
            transition(run, end, event.at, event, reason=note, result=result, fault=fault)
        )

    async def _run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        parent = await self._runs.run(run_id)
        await self._check(parent)
        run, plan = self._child(parent)
        kept = await self._put_up(run, plan, actor)
        await self._say(parent, kept, note, actor)
        return kept

    async def _check(self, parent: Run) -> None:
        """Require that it is in doubt, and that one that does it again is done with.

        :raises Conflict: it is not in doubt, or one that does it again is not done with.
        """
        if parent.state is not RunState.UNKNOWN:
            raise make_conflict(parent)
        for child in (await self._runs.table.list(RunQuery(parent_id=parent.id))).items:
            if child.state in _OPEN:
                state = child.state.value
                raise Conflict("It is being done again: end that run first.", {"run_id": child.id, "state": state})

    def _child(self, parent: Run) -> tuple[Run, Plan]:
        """Make the new run: under the old effect key where the service tells by that that it has done it already."""
        self._planner.offerings.refresh()
        action = self._planner.offerings.find(parent.action).action
        arguments = check_arguments(action, parent.arguments)
        plan, key = self._planner.plan(action, arguments, parent.effect_key), parent.effect_key
        if not all(planned.idempotent for planned in plan.steps if planned.effect != READ):
            key = self._runs.events.fresh_id()
            plan = self._planner.plan(action, arguments, key)
        now = self._runs.events.now()
        run = Run(
            id=self._runs.events.fresh_id(),
            action=action.name,
            action_version=action.version,
            manifest_digest=action.digest,
            arguments=arguments,
            state=RunState.RECEIVED,
            gated=True,
            effect_key=key,
            received_at=now,
            changed_at=now,
            session_id=parent.session_id,
            parent_id=parent.id,
        )
        return run, plan

    async def _say(self, parent: Run, child: Run, note: str, actor: Actor) -> None:
        """Note the new run on record and on the old run."""
        same = child.effect_key == parent.effect_key
        event = self._runs.events.of_run("run.run_again", parent, actor, by=child.id, note=note, same_effect_key=same)

        def changed(present: Run) -> Transition:
            fault = present.fault or Fault("outcome_unknown", "Nobody can say what became of it.")
            return transition(
                present,
                RunState.UNKNOWN,
                event.at,
                event,
                fault=fault.with_details(run_again=child.id),
                reason=note or present.reason,
                result=present.result,
                verify=require_unchanged(present),
            )

        await self._recorder.amend(parent, changed, (event,))
