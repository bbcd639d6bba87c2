"""The gate: taking the decision, and telling whether it still holds when the effect is to begin."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from attrs import define, evolve

from aileron.errors import AileronError, ApprovalStale, Conflict, InvalidRequest, StateConflict
from aileron.values import Actor, Approval, ApprovalRule, Decision, Run, RunState, Transition, timestamp

from ._asking import Asking, difference, still_shows
from ._decisions import MOST_AHEAD, TICK, Decisions, EarlierKey, NoDecision
from ._ledger import Ledger
from ._lifecycle import transition
from ._offering import Offerings
from ._pausing import Pauses
from ._pen import Pen
from ._plan import Plan
from ._undo import Undo


@define(eq=False)
class Gate:
    """Between a gated run and its effect.  This is the one place that takes a decision."""

    _ledger: Ledger
    _offerings: Offerings
    _asking: Asking
    _decisions: Decisions
    _pen: Pen
    _undo: Undo
    _pauses: Pauses

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """See L{IRunner.decide}."""
        looked = self._pen.now()
        _check_time(decision, looked)
        self._offerings.refresh()
        approval = await self._asking.fresh(await self._ledger.approval(run_id))
        self._check_open(approval)
        if decision.digest != approval.digest:
            raise ApprovalStale(
                "What would run is no longer what was shown: look at it again.",
                {"digest": approval.digest, "stale": approval.stale},
            )
        undo_seconds = 0.0
        if decision.approved:
            self._pauses.refuse(approval.run.session_id)
            undo_seconds = self._rule_of(approval).undo_seconds
        else:
            await self._decisions.outdate(approval.run, looked - TICK)  # one that is taken meanwhile wins
        signed = self._decisions.signed(approval.run, decision, undo_seconds)
        self._undo.hold(run_id, undo_seconds)  # before the commit, so that nothing begins between the two
        try:
            run = await self._ledger.apply(self._decided(approval, signed))
        except StateConflict as conflict:
            raise _too_late(conflict.present) from conflict
        return evolve(
            approval,
            run=run,
            approved=signed.approved,
            decided_at=signed.decided_at,
            decided_by=signed.decided_by,
            reason=signed.reason,
            not_before=signed.not_before,
            not_after=signed.not_after,
            mark=signed.mark,
        )

    async def ready(self, run: Run) -> tuple[Plan, Approval] | None:
        """What an approved run would do, and the decision for it, if that still holds; else it is asked anew.

        :raises VaultLocked, BindingFailed: whether it holds cannot be told now.
        :raises NotYet: it lets the run begin later.
        """
        self._offerings.refresh()
        approval = await self._asking.recorded(run)
        try:
            if approval is None:
                raise NoDecision("There is no decision on record.")
            await self._check(approval)
            return self._as_approved(approval), approval
        except ApprovalStale as found:
            await self._asking.ask_anew(run, found)
        return None

    async def _check(self, approval: Approval) -> None:
        """As of L{Decisions.check}; and it must be on record as well, be it of an earlier key."""
        on_record = await self._decisions.on_record(approval.run, approval)
        try:
            self._decisions.check(approval.run, approval)
        except EarlierKey:
            if on_record:
                raise
        if not on_record:
            raise NoDecision("The record tells of no such decision, or of what came after it.")

    async def expire(self, run_id: str) -> None:
        """End a wait that the manifest limits, unless it has ended by itself."""
        run = await self._ledger.run(run_id)
        if run.state is RunState.PENDING:
            event = self._pen.of_run("approval.expired", run)
            with suppress(StateConflict):  # decided or withdrawn at the last moment
                await self._ledger.apply(transition(run, RunState.EXPIRED, self._pen.now(), event))

    def _decided(self, approval: Approval, decision: Decision) -> Transition:
        run = approval.run
        actor = Actor("human", decision.decided_by)
        now = decision.decided_at or self._pen.now()
        waited = int((now - approval.requested_at).total_seconds() * 1000)
        event = self._pen.of_run(
            "approval.approved" if decision.approved else "approval.denied",
            run,
            actor,
            digest=decision.digest,
            reason=decision.reason,
            wait_ms=waited,
            not_before=None if decision.not_before is None else timestamp(decision.not_before),
        )
        end = RunState.APPROVED if decision.approved else RunState.DENIED
        return transition(
            run,
            end,
            now,
            event,
            decision=decision,
            reason=decision.reason,
            verify=still_shows(decision.digest),
            start_after=decision.not_before,
        )

    def _check_open(self, approval: Approval) -> None:
        if approval.run.state is not RunState.PENDING:
            raise _too_late(approval.run)
        if approval.expires_at is not None and approval.expires_at <= self._pen.now():
            raise _too_late(evolve(approval.run, state=RunState.EXPIRED))

    def _rule_of(self, approval: Approval) -> ApprovalRule:
        """What the manifest says of an approval that could run now."""
        try:
            return self._asking.plan(approval.run).action.approval
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}", error.details) from error

    def _as_approved(self, approval: Approval) -> Plan:
        """What would run now, where that is what a sound decision is for.

        :raises ApprovalStale: it is something else, or cannot run.
        """
        try:
            plan = self._asking.plan(approval.run)
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error
        if plan.digest(approval.run) != approval.digest:
            raise _otherwise(approval, plan)
        return plan


def _check_time(decision: Decision, now: datetime) -> None:
    if decision.not_before is not None and decision.not_before > now + MOST_AHEAD:
        problem = f"at most {MOST_AHEAD.days} days ahead"
        raise InvalidRequest.listing("It cannot be put off for so long.", ("/not_before", problem))


def _too_late(run: Run) -> Conflict:
    return Conflict(f"It is {run.state.value} already.", {"state": run.state.value})


def _otherwise(approval: Approval, plan: Plan) -> ApprovalStale:
    """Why a sound decision is not for C{plan}: a file has changed, or else the run's own row."""
    before, after = approval.review, plan.review()
    same_file = before.get("manifest_digest") == after["manifest_digest"]
    if same_file and before.get("fields") != after["fields"]:
        return NoDecision("What is on record of the run is not what was approved.")
    return ApprovalStale(difference(approval, plan))
