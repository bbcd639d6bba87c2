"""Puts up again what nobody can say whether it happened: a new run, linked to the old one, and always asked about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from aileron.errors import Conflict
from aileron.manifests import check_arguments
from aileron.runner.runs.plan import Plan, Planner
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import transition
from aileron.runner.scheduling import KeyedLocks
from aileron.values import READ, Actor, Fault, Run, RunQuery, RunState, Transition

from .recorder import OutcomeRecorder, require_unchanged

_OPEN = frozenset(state for state in RunState if not state.settled) | {RunState.UNKNOWN}


@frozen(eq=False)
class Rerun:
    """Puts up an C{unknown} run's action for decision once more; one at a time for each run."""

    _runs: RunRepository
    _planner: Planner
    _put_up: Callable[[Run, Plan, Actor], Awaitable[Run]]
    _recorder: OutcomeRecorder
    _locks: KeyedLocks

    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        """Create a run that repeats one of unknown outcome, once no other change of that one is under way."""
        return await self._locks.run(run_id, lambda: self._run_again(run_id, note, actor))

    async def _run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        parent = await self._runs.run(run_id)
        await self._check(parent)
        run, plan = self._child(parent)
        kept = await self._put_up(run, plan, actor)
        await self._say(parent, kept, note, actor)
        return kept

    async def _check(self, parent: Run) -> None:
        """:raises Conflict: it is not in doubt, or one that does it again is not done with."""
        if parent.state is not RunState.UNKNOWN:
            raise Conflict(f"It is {parent.state.value} already.", {"state": parent.state.value})
        for child in (await self._runs.table.list(RunQuery(parent_id=parent.id))).items:
            if child.state in _OPEN:
                state = child.state.value
                raise Conflict("It is being done again: end that run first.", {"run_id": child.id, "state": state})

    def _child(self, parent: Run) -> tuple[Run, Plan]:
        """The new run: under the old effect key where the service tells by that that it has done it already."""
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
