"""What the operator edits before deciding: checked as the agent's call was, and asked anew in one step."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, frozen

from aileron.errors import Paused, StateConflict, VaultLocked
from aileron.manifests import check_arguments
from aileron.runner.runs.events import Pen
from aileron.runner.runs.offerings import Offerings
from aileron.runner.runs.preview import Preview
from aileron.runner.runs.repository import Ledger
from aileron.runner.runs.transitions import transition
from aileron.runner.scheduling.locks import Turns
from aileron.values import JSON, Actor, Approval, Ask, Run, RunState, Transition, canonical, differences

from .gate import Gate, too_late
from .previews import Previewing, missed
from .requests import Asking, still_shows


@frozen
class Edit:
    """What the operator wants instead.

    :ivar digest: of what was shown; L{None}: of whatever is.
    """

    arguments: Mapping[str, JSON]
    digest: str | None
    actor: Actor


@define(eq=False)
class Editing:
    """Replaces the arguments of a run that waits for its decision."""

    _ledger: Ledger
    _offerings: Offerings
    _asking: Asking
    _gate: Gate
    _previewing: Previewing
    _turns: Turns
    _pen: Pen

    async def edit(self, run_id: str, edit: Edit) -> Approval:
        """See L{IRunner.edit}."""
        approval = await self._gate.open(run_id, edit.digest)
        edited = self._edited(approval.run, edit.arguments)
        if canonical(edited.arguments) == canonical(approval.run.arguments):
            return approval
        preview = await self._preview(edited)
        await self._turns.take(run_id, lambda: self._put(approval, edited, preview, edit.actor))
        present = await self._ledger.approval(run_id)
        if missed(present):
            self._previewing.begin(run_id)
        return present

    def _edited(self, run: Run, arguments: Mapping[str, JSON]) -> Run:
        """C{run} as it would be, with what it needs for that.

        :raises AileronError: it cannot run so.
        """
        action = self._offerings.find(run.action).action
        edited = evolve(run, arguments=check_arguments(action, arguments))
        self._asking.plan(edited)
        return edited

    async def _preview(self, edited: Run) -> Preview | None:
        try:
            return await self._previewing.afresh(edited)
        except (VaultLocked, Paused):
            return None

    async def _put(self, approval: Approval, edited: Run, preview: Preview | None, actor: Actor) -> None:
        """Ask for the edited run instead, if what was edited still stands there."""
        self._offerings.refresh()
        plan = self._asking.plan(edited, preview)
        ask = Ask(plan.digest(edited), plan.review(), approval.requested_at, approval.expires_at)
        try:
            await self._ledger.apply(self._change(approval, edited, ask, actor))
        except StateConflict as conflict:
            raise too_late(conflict.present) from conflict

    def _change(self, approval: Approval, edited: Run, ask: Ask, actor: Actor) -> Transition:
        run, now = approval.run, self._pen.now()
        changes: JSON = [change.as_json() for change in differences(run.arguments, edited.arguments)]
        event = self._pen.of_run(
            "approval.modified", run, actor, digest=ask.digest, before=approval.digest, changes=changes
        )
        unless_changed = still_shows(approval.digest)
        arguments = edited.arguments
        return transition(run, RunState.PENDING, now, event, ask=ask, edited=arguments, verify=unless_changed)
