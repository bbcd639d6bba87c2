"""Edits what waits for a decision: checks it as the agent's call was, and asks anew in one step."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, frozen

from aileron.errors import Paused, StateConflict, VaultLocked
from aileron.manifests import check_arguments
from aileron.runner.runs.preview import Preview
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import transition
from aileron.runner.scheduling import KeyedLocks
from aileron.values import JSON, Actor, Approval, Ask, Run, RunState, Transition, canonical, differences

from .gate import ApprovalGate, make_conflict
from .previews import Previews, lacks_preview
from .requests import ApprovalRequests, require_digest


@frozen
class Edit:
    """Holds what the operator wants instead.

    :ivar digest: of what was shown; L{None}: of whatever is.
    """

    arguments: Mapping[str, JSON]
    digest: str | None
    actor: Actor


@define(eq=False)
class ApprovalEditor:
    """Replaces the arguments of a run that waits for its decision."""

    _runs: RunRepository
    _requests: ApprovalRequests
    _gate: ApprovalGate
    _previews: Previews
    _locks: KeyedLocks

    async def edit(self, run_id: str, edit: Edit) -> Approval:
        """Check the new arguments, fetch their preview, and put the approval up anew.

        See L{IDecisions.edit} for its contract.
        """
        approval = await self._gate.open(run_id, edit.digest)
        edited = self._edited(approval.run, edit.arguments)
        if canonical(edited.arguments) == canonical(approval.run.arguments):
            return approval
        preview = await self._preview(edited)
        await self._locks.run(run_id, lambda: self._put(approval, edited, preview, edit.actor))
        present = await self._runs.approval(run_id)
        if lacks_preview(present):
            self._previews.begin(run_id)
        return present

    def _edited(self, run: Run, arguments: Mapping[str, JSON]) -> Run:
        """C{run} as it would be, with what it needs for that.

        :raises AileronError: it cannot run so.
        """
        action = self._requests.planner.offerings.find(run.action).action
        edited = evolve(run, arguments=check_arguments(action, arguments))
        self._requests.plan(edited)
        return edited

    async def _preview(self, edited: Run) -> Preview | None:
        try:
            return await self._previews.afresh(edited)
        except (VaultLocked, Paused):
            return None

    async def _put(self, approval: Approval, edited: Run, preview: Preview | None, actor: Actor) -> None:
        """Ask for the edited run instead, if what was edited still stands there."""
        self._requests.planner.offerings.refresh()
        plan = self._requests.plan(edited, preview)
        ask = Ask(plan.digest(edited), plan.review(), approval.requested_at, approval.expires_at)
        try:
            await self._runs.apply(self._change(approval, edited, ask, actor))
        except StateConflict as conflict:
            raise make_conflict(conflict.present) from conflict

    def _change(self, approval: Approval, edited: Run, ask: Ask, actor: Actor) -> Transition:
        run, now = approval.run, self._runs.events.now()
        changes: JSON = [change.as_json() for change in differences(run.arguments, edited.arguments)]
        event = self._runs.events.of_run(
            "approval.modified", run, actor, digest=ask.digest, before=approval.digest, changes=changes
        )
        unless_changed = require_digest(approval.digest)
        arguments = edited.arguments
        return transition(run, RunState.PENDING, now, event, ask=ask, edited=arguments, verify=unless_changed)
