"""The gate: what is put up for decision, whether it still holds, and taking the decision."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, evolve

from aileron.errors import AileronError, ApprovalStale, Conflict, StateConflict, StoreUnavailable
from aileron.manifests import check_arguments
from aileron.values import (
    Actor,
    Approval,
    ApprovalRule,
    Ask,
    Decision,
    Run,
    RunState,
    Transition,
    digest,
    timestamp,
)

from ._ledger import Ledger
from ._lifecycle import transition
from ._offering import Offerings
from ._pen import Pen
from ._plan import Plan, Planner

APPROVAL_HOLDS = timedelta(hours=24)
"""An approved run that has not started by then asks again."""


@define(eq=False)
class Gate:
    """Between a gated run and its effect.  This is the one place that takes a decision."""

    _ledger: Ledger
    _offerings: Offerings
    _planner: Planner
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

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """See L{IRunner.decide}."""
        self._offerings.refresh()
        approval = await self.fresh(await self._ledger.approval(run_id))
        self._check_open(approval)
        if decision.digest != approval.digest:
            raise ApprovalStale(
                "What would run is no longer what was shown: look at it again.",
                {"digest": approval.digest, "stale": approval.stale},
            )
        if decision.approved:
            self._check_can_run(approval)
        try:
            run = await self._ledger.apply(self._decided(approval, decision))
        except StateConflict as conflict:
            raise _too_late(conflict.present) from conflict
        return evolve(
            approval,
            run=run,
            approved=decision.approved,
            decided_at=run.changed_at,
            decided_by=decision.decided_by,
            reason=decision.reason,
        )

    async def ready(self, run: Run) -> Plan | None:
        """The plan of an approved run, if its approval still holds; else L{None}, and it is asked anew."""
        self._offerings.refresh()
        approval = await self._ledger.approval(run.id)
        plan, ask = self._look(approval)
        ask = ask or self._too_old(approval)
        if ask is None:
            return plan
        await self._ask_again(approval, ask)
        return None

    def verification(self, approved_digest: str) -> Callable[[Run, Approval | None], None]:
        """What is checked inside the transaction that commits C{executing}: there is a decision, and it is for this."""

        def verify(run: Run, approval: Approval | None) -> None:
            if approval is None or not approval.approved or approval.digest != approved_digest:
                raise ApprovalStale("There is no decision for exactly this.")

        return verify

    async def distrust(self, run: Run, plan: Plan) -> None:
        """Ask anew about an approved run whose recorded decision is not one for what would run."""
        stale = "The decision on record was not for this."
        event = self._pen.of_run("tamper.detected", run, reason=stale)
        expires = self._expires(plan.action.approval)
        ask = Ask(plan.digest(run), plan.review(), self._pen.now(), expires, stale)
        await self._ledger.apply(transition(run, RunState.PENDING, self._pen.now(), event, ask=ask))

    async def expire(self, run: Run) -> None:
        """End a wait that the manifest limits."""
        event = self._pen.of_run("approval.expired", run)
        await self._ledger.apply(transition(run, RunState.EXPIRED, self._pen.now(), event))

    def _decided(self, approval: Approval, decision: Decision) -> Transition:
        run = approval.run
        actor = Actor("human", decision.decided_by)
        waited = int((self._pen.now() - approval.requested_at).total_seconds() * 1000)
        event = self._pen.of_run(
            "approval.approved" if decision.approved else "approval.denied",
            run,
            actor,
            digest=decision.digest,
            reason=decision.reason,
            wait_ms=waited,
        )
        end = RunState.APPROVED if decision.approved else RunState.DENIED
        return transition(
            run,
            end,
            self._pen.now(),
            event,
            decision=decision,
            reason=decision.reason,
            verify=_still_shows(decision.digest),
        )

    def _check_open(self, approval: Approval) -> None:
        if approval.run.state is not RunState.PENDING:
            raise _too_late(approval.run)
        if approval.expires_at is not None and approval.expires_at <= self._pen.now():
            raise _too_late(evolve(approval.run, state=RunState.EXPIRED))

    def _check_can_run(self, approval: Approval) -> None:
        try:
            self.plan(approval.run)
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}", error.details) from error

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
        expires = approval.expires_at if run.state is RunState.PENDING else self._expires(plan.action.approval)
        return plan, Ask(asked, plan.review(), self._pen.now(), expires, _difference(approval, plan))

    def _cannot_run(self, approval: Approval, error: AileronError) -> Ask | None:
        stale = f"It cannot run now: {error.message}"
        if approval.stale == stale:
            return None
        mark = digest({"run": approval.run.id, "stale": stale, "at": timestamp(self._pen.now())})
        expires = approval.expires_at if approval.run.state is RunState.PENDING else None
        return Ask(mark, approval.review, self._pen.now(), expires, stale)

    def _too_old(self, approval: Approval) -> Ask | None:
        decided = approval.decided_at
        if decided is not None and self._pen.now() - decided <= APPROVAL_HOLDS:
            return None
        return Ask(
            approval.digest,
            approval.review,
            self._pen.now(),
            self._expires(self._offerings.find(approval.run.action).action.approval),
            "It was approved more than 24 hours ago and had not started.",
        )

    def _expires(self, rule: ApprovalRule) -> datetime | None:
        """When a wait for a decision that begins now ends, if it does."""
        seconds = rule.expires_after_seconds
        return None if seconds is None else self._pen.now() + timedelta(seconds=seconds)

    async def _ask_again(self, approval: Approval, ask: Ask) -> None:
        """Put C{ask} in the place of C{approval}.

        :raises StateConflict, ApprovalStale: something else has taken its place.
        """
        run = approval.run
        event = self._pen.of_run("approval.stale", run, reason=ask.stale, digest=ask.digest)
        unless_changed = _still_shows(approval.digest)
        await self._ledger.apply(
            transition(run, RunState.PENDING, self._pen.now(), event, ask=ask, verify=unless_changed)
        )


def _still_shows(shown: str) -> Callable[[Run, Approval | None], None]:
    def verify(run: Run, approval: Approval | None) -> None:
        if approval is None or approval.digest != shown:
            raise ApprovalStale("It was asked anew just now: look at it again.")

    return verify


def _too_late(run: Run) -> Conflict:
    return Conflict(f"It is {run.state.value} already.", {"state": run.state.value})


def _difference(approval: Approval, plan: Plan) -> str:
    """In one sentence, what is no longer as it was shown."""
    before, after = approval.review, plan.review()
    if before.get("manifest_digest") != after["manifest_digest"]:
        return f"The action {plan.action.name} was changed since."
    if before.get("fields") != after["fields"]:
        return "The arguments are read differently now."
    if before == after:
        return "It could not run for a while, and can again."
    return "The connector, its binding or the request that would leave was changed since."
