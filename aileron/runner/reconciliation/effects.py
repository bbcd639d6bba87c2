"""Which step of an C{unknown} run may have happened, worked out anew, if it is still what was begun."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from aileron.errors import AileronError, CapabilityDenied, Conflict, StoreUnavailable
from aileron.interfaces import IAudit, IRuns
from aileron.runner.approval.decisions import UNUSABLE, Decisions
from aileron.runner.approval.requests import ApprovalRequests
from aileron.runner.runs.offerings import Offerings
from aileron.runner.runs.plan import Plan, PlannedStep, step_key
from aileron.values import JSON, WRITE, AttemptRow, AuditQuery, Run, Sought, canonical

from .recorder import UncertainEffect


@frozen
class UncertainEffects:
    """Works out what is to be looked for, from rows that nobody need believe.

    What is asked of the service is what the operator decided on, or what the action does without asking; and it is
    what the record says that was begun.
    """

    _runs: IRuns
    _audit: IAudit
    _offerings: Offerings
    _requests: ApprovalRequests
    _decisions: Decisions

    async def of(self, run: Run) -> tuple[UncertainEffect, Sought]:
        """The step of C{run} that may have happened, and how its effect is looked for.

        :raises CapabilityDenied: nothing of the kind can be looked for.
        :raises Conflict: the action, its connector or the binding are others by now, or its rows are.
        :raises VaultLocked, BindingFailed: that cannot be told now.
        """
        plan = await self._plan(run)
        done = {row.step_id: row.output for row in await self._runs.steps(run.id)}
        position = len(done)
        if position >= len(plan.steps) or list(done) != [each.step.id for each in plan.steps[:position]]:
            raise Conflict("The steps on record are not those of the action.")
        planned = plan.steps[position]
        tried = [row for row in await self._runs.attempts(run.id) if row.step_id == planned.step.id]
        if not tried:
            raise Conflict("No step of it is in doubt any more, and the rest was never begun.")
        if planned.effect != WRITE or not planned.reconcilable:
            raise CapabilityDenied(f"{planned.description.fqn} declares no way to look whether this happened.")
        doubt = UncertainEffect(run, planned, position, done, position == len(plan.steps) - 1)
        return doubt, _sought(plan, doubt, tried)

    async def _plan(self, run: Run) -> Plan:
        self._offerings.refresh()
        try:
            plan = await self._decided(run)
        except (Conflict, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise Conflict(f"It cannot be worked out any more: {error.message}") from error
        if plan.action.digest != run.manifest_digest or not await self._begun(run, plan.steps):
            raise Conflict("The action, its connector or the binding were changed since it was begun.")
        return plan

    async def _decided(self, run: Run) -> Plan:
        """What it does now; where somebody must be asked, what somebody has said yes to."""
        approval = await self._requests.recorded(run)
        plan = self._requests.plan(run) if approval is None else self._requests.plan_shown(approval)
        if approval is None:
            if plan.action.approval.required or run.parent_id is not None:
                raise Conflict("There is no decision on record.")
            return plan
        if not self._decisions.was_taken(run, approval) or plan.digest(run) != approval.digest:
            raise Conflict("It is not what was approved.")
        return plan

    async def _begun(self, run: Run, steps: Sequence[PlannedStep]) -> bool:
        """Whether the record says that these very steps were begun."""
        records = (await self._audit.list(AuditQuery(run_id=run.id, type="execution.started", limit=1))).items
        pinned: JSON = [planned.pinned() for planned in steps]
        return bool(records) and canonical(records[0].event.payload.get("steps")) == canonical(pinned)


def _sought(plan: Plan, doubt: UncertainEffect, tried: Sequence[AttemptRow]) -> Sought:
    planned, run = doubt.planned, doubt.run
    try:
        inputs = plan.inputs_of(planned, doubt.done)
    except AileronError as error:
        raise Conflict(f"What it was given cannot be worked out: {error.message}") from error
    last = tried[-1]
    return Sought(
        planned.step.operation,
        inputs,
        planned.base_url,
        step_key(run.effect_key, planned.step),
        tried[0].started_at,
        last.ended_at or last.started_at,
    )
