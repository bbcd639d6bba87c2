"""What is put up for decision, whether it still holds, and asking anew where it does not."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, evolve

from aileron.errors import AileronError, ApprovalStale, NotFound, StateConflict, StoreUnavailable
from aileron.manifests import check_arguments
from aileron.values import (
    JSON,
    Actor,
    Approval,
    ApprovalRule,
    Ask,
    Run,
    RunState,
    Transition,
    digest,
    timestamp,
)

from ._decisions import Decisions, NoDecision, Verify
from ._ledger import Ledger
from ._lifecycle import transition
from ._offering import Offerings
from ._pen import Pen
from ._plan import Plan, Planner


@define(eq=False)
class Asking:
    """What the operator is asked: worked out by what is there now, and put up again when that is something else."""

    _ledger: Ledger
    _offerings: Offerings
    _planner: Planner
    _decisions: Decisions
    _pen: Pen

    def opening(self, run: Run, plan: Plan, actor: Actor) -> Transition:
        """C{run} put up for decision for the first time."""
        now = self._pen.now()
        ask = Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval))
        event = self._pen.of_run("approval.requested", run, actor, digest=ask.digest)
        return transition(run, RunState.PENDING, now, event, ask=ask)

    def plan(self, run: Run) -> Plan:
        """What C{run} would do by what is there now.

        :raises AileronError: what it needs is gone, switched off, or takes its arguments no longer.
        """
        action = self._offerings.find(run.action).action
        return self._planner.plan(action, check_arguments(action, run.arguments), run.effect_key)

    async def fresh(self, approval: Approval) -> Approval:
        """C{approval} as it must be looked at now: asked anew where what would run is no longer what is shown.

        While it waits, what is shown is what would run, worked out now; the row's own text is not believed.
        """
        if approval.run.state is not RunState.PENDING:
            return approval
        plan, ask = self._look(approval)
        if ask is None:
            return approval if plan is None else evolve(approval, review=plan.review())
        with suppress(StateConflict, ApprovalStale):  # decided or asked anew meanwhile: the look below shows it
            await self._ask_again(approval, ask)
        return await self._ledger.approval(approval.run.id)

    async def shown(self, approval: Approval) -> Approval:
        """As L{fresh}; where that cannot be written, what stands there, marked as such: looking needs no disk."""
        try:
            return await self.fresh(approval)
        except StoreUnavailable:
            return evolve(approval, stale="It has changed, and cannot be asked anew while the database refuses.")

    async def ask_anew(self, run: Run, found: ApprovalStale) -> None:
        """Put an approved run up for decision once more; that it was no decision at all is put on record as such.

        :raises StateConflict: it is approved no longer.
        :raises VaultLocked, BindingFailed, StoreUnavailable: the decision would go on to count.
        """
        approval = await self.recorded(run)
        ask = self._anew(run, approval, found.message)
        event = self._pen.of_run("approval.stale", run, reason=found.message, digest=ask.digest)
        if isinstance(found, NoDecision):
            event = self._pen.of_run("tamper.detected", run, row="approvals", found=found.message, digest=ask.digest)
        await self._decisions.outdate(
            run, self._pen.now()
        )  # before the question that takes its place, so that no crash keeps it
        await self._ledger.apply(transition(run, RunState.PENDING, self._pen.now(), event, ask=ask))

    def _look(self, approval: Approval) -> tuple[Plan | None, Ask | None]:
        """What would run now, if anything, and what to ask instead of what stands there, if that is something else."""
        run = approval.run
        try:
            plan = self.plan(run)
        except AileronError as error:
            return None, self._cannot_run(approval, error)
        asked = plan.digest(run)
        if asked == approval.digest:
            return plan, None
        return plan, Ask(asked, plan.review(), self._pen.now(), approval.expires_at, difference(approval, plan))

    def _cannot_run(self, approval: Approval, error: AileronError) -> Ask | None:
        stale = f"It cannot run now: {error.message}"
        if (approval.stale or "").endswith(stale):
            return None
        return Ask(self._nothing(approval.run, stale), approval.review, self._pen.now(), approval.expires_at, stale)

    def _anew(self, run: Run, approval: Approval | None, stale: str) -> Ask:
        """What to ask of an approved run whose decision counts no more."""
        now = self._pen.now()
        try:
            plan = self.plan(run)
        except AileronError as error:
            cannot = f"It cannot run now: {error.message}"
            stale = stale if stale == cannot else f"{stale} {cannot}"
            review = _bare_review(run) if approval is None else approval.review
            return Ask(self._nothing(run, stale), review, now, None, stale)
        return Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval), stale)

    def _nothing(self, run: Run, stale: str) -> str:
        """A digest that is of nothing that could run."""
        return digest({"run": run.id, "stale": stale, "at": timestamp(self._pen.now())})

    async def recorded(self, run: Run) -> Approval | None:
        with suppress(NotFound):
            return await self._ledger.approval(run.id)
        return None

    def _expires(self, rule: ApprovalRule) -> datetime | None:
        """When a wait for a decision that begins now ends, if it does."""
        seconds = rule.expires_after_seconds
        return None if seconds is None else self._pen.now() + timedelta(seconds=seconds)

    async def _ask_again(self, approval: Approval, ask: Ask) -> None:
        """Put C{ask} in the place of C{approval}, which waits.

        :raises StateConflict, ApprovalStale: something else has taken its place.
        """
        run = approval.run
        event = self._pen.of_run("approval.stale", run, reason=ask.stale, digest=ask.digest)
        unless_changed = still_shows(approval.digest)
        await self._ledger.apply(
            transition(run, RunState.PENDING, self._pen.now(), event, ask=ask, verify=unless_changed)
        )


def still_shows(shown: str) -> Verify:
    def verify(run: Run, approval: Approval | None) -> None:
        if approval is None or approval.digest != shown:
            raise ApprovalStale("It was asked anew just now: look at it again.")

    return verify


def _bare_review(run: Run) -> dict[str, JSON]:
    """What can be shown of a run whose approval is gone and that cannot be worked out."""
    action: JSON = {"name": run.action, "version": run.action_version, "source": ""}
    return {"action": action, "manifest_digest": run.manifest_digest, "fields": [], "steps": []}


def difference(approval: Approval, plan: Plan) -> str:
    """In one sentence, what is no longer as it was shown."""
    before, after = approval.review, plan.review()
    if before.get("manifest_digest") != after["manifest_digest"]:
        return f"The action {plan.action.name} was changed since."
    if before.get("fields") != after["fields"]:
        return "The arguments are read differently now."
    if before == after:
        return "It could not run for a while, and can again."
    return "The connector, its binding or the request that would leave was changed since."
