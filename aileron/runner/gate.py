"""Takes decisions, and tells whether they still hold when the effect is to begin."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from attrs import define, evolve

from aileron.base.json import JSON, timestamp
from aileron.model.actions import ApprovalRule
from aileron.model.audit import Actor
from aileron.model.authority import NewGrant, PasskeyRule, approval_statement
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    Conflict,
    InvalidRequest,
    Paused,
    StateConflict,
    StoreUnavailable,
)
from aileron.model.reviews import Preview
from aileron.model.runs import Approval, Assertion, Decision, Run, RunState, Transition

from .decisions import (
    MOST_AHEAD,
    TICK,
    UNUSABLE,
    Decisions,
    EarlierKey,
    GaveWay,
    NoDecision,
    NotYet,
    UndoWindow,
    decision_digest,
)
from .grant_check import GrantCheck
from .pauses import EffectGate
from .plan import Plan
from .previews import Previews
from .requests import ApprovalRequests, describe_approval, describe_difference, require_digest
from .runs import RunRepository, Verify, make_conflict, transition

_OTHERWISE = "What would run has just changed."
_INTERRUPTED = (
    "The approval no longer counts: the request was being denied or updated when it was given, or when Aileron last "
    "stopped."
)


class PasskeyCheck(Protocol):
    """Checks whether a passkey was used where one is needed."""

    def passkey_rule(self) -> PasskeyRule:
        """Return what may not be approved without one."""

    def check(self, action: str, about: Mapping[str, JSON], assertion: Assertion | None) -> None:
        """Pass if no passkey is needed, or one was used for exactly C{about}.

        An assertion that is given is checked in any case.

        :raises Forbidden: one is needed and was not used, or not for this; C{details["passkey"]} is true.
        :raises VaultLocked, BindingFailed, StoreUnavailable: its use could not be noted.
        """


@define(eq=False)
class ApprovalGate:
    """Stands between a gated run and its effect.  This is the one place that takes a decision.

    :ivar requests: what is asked.
    :ivar previews: what is shown of the service's side.
    :ivar undo: knows when approved runs may begin.
    """

    _runs: RunRepository
    requests: ApprovalRequests
    _decisions: Decisions
    previews: Previews
    undo: UndoWindow
    _effects: EffectGate
    _grants: GrantCheck
    _passkeys: PasskeyCheck

    async def admit(self, run_id: str, decision: Decision, wish: NewGrant | None = None) -> None:
        """Let only who used a passkey approve what needs one, before anything else comes of it.

        :param wish: the grant that goes with it.
        :raises NotFound: there is no such approval.
        :raises Forbidden: a passkey is needed and was not used for exactly this.
        """
        if decision.approved and self._passkeys.passkey_rule().asks:
            approval = await self._runs.approval(run_id)
            statement = approval_statement(run_id, decision, wish)
            self._passkeys.check(approval.run.action, statement, decision.assertion)

    def refuse_unsigned(self, approval: Approval, decision: Decision) -> None:
        """Once more by the row as it is now: who can write it could have called its action another for L{admit}.

        :raises Forbidden: a passkey is needed, and none was used.
        """
        if decision.approved and decision.assertion is None:
            self._passkeys.check(approval.run.action, {}, None)

    async def seen_before_decision(self, run_id: str, decision: Decision) -> Preview | None:
        """Fetch the preview as it is now, where an approval may rest on it. It takes its time, so take no turn for it.

        :raises VaultLocked, Paused: it cannot be fetched now.
        """
        approval = await self._runs.approval(run_id)
        if not decision.approved or not approval.review.may_have_preview:
            return None
        self.requests.planner.offerings.refresh()
        approval = await self.requests.fresh(approval)
        if decision.digest != approval.digest or approval.run.state is not RunState.PENDING:
            return None
        return await self._fetch(approval.run)

    async def decide(self, run_id: str, decision: Decision, preview: Preview | None) -> Approval:
        """Take one decision and mark it; the caller holds the run's lock.

        :param preview: from L{seen_before_decision}.
        """
        looked = self._runs.events.now()
        _check_time(decision, looked)
        approval = await self.open(run_id, decision.digest)
        self.refuse_unsigned(approval, decision)
        undo_seconds = 0.0
        if decision.approved:
            await self._refuse_repetition(approval.run)
            undo_seconds = (await self._confirm(approval, preview)).undo_seconds
            self._effects.pauses.refuse(approval.run.session_id)
        else:
            await self._decisions.outdate(approval.run, looked - TICK)  # one that is taken meanwhile wins
        signed = self._decisions.signed(approval.run, decision, undo_seconds)
        self.undo.hold(run_id, undo_seconds)  # before the commit, so that nothing begins between the two
        decided = await self._runs.note_superseded(self._find_decided(approval, signed), approval.run)
        run = await self._runs.apply_or_refuse(decided)
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

    async def open(self, run_id: str, digest: str | None) -> Approval:
        """Return what waits for a decision, if it is what C{digest} binds; L{None}: whatever waits.

        :raises NotFound, Conflict, ApprovalStale: as of L{decide}.
        """
        self.requests.planner.offerings.refresh()
        approval = await self.requests.fresh(await self._runs.approval(run_id))
        _check_open(approval, self._runs.events.now())
        # guard of promise 3: a decision names what is shown -> ReviewedTests
        if digest not in (None, approval.digest):
            raise ApprovalStale(
                "What would run is no longer what was shown. Review it again.",
                describe_approval(approval),
            )
        return approval

    def granted(self, approval: Approval, decision: Decision, rule: ApprovalRule) -> Transition:
        """Take the decision of a standing grant, its use counted, on what is put up in the same transaction.

        :raises VaultLocked, BindingFailed: it cannot be marked now.
        """
        signed = self._decisions.signed(approval.run, decision, rule.undo_seconds)
        self.undo.hold(approval.run.id, rule.undo_seconds)
        return self._find_decided(approval, signed)

    async def seen_before_effect(self, run: Run) -> Preview | None:
        """Fetch the preview where a sound decision rests on it; this takes time, so no lock may be held meanwhile.

        :raises VaultLocked, BindingFailed, Paused: it cannot be fetched now.
        :raises NotYet: its decision lets it begin later.
        """
        try:
            if self.requests.plan(run).preview is None:
                return None
            await self._sound(run)
            return await self._fetch(run, before_effect=True)
        except (NotYet, Paused, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError:
            return None  # it will be asked anew, in its turn

    async def sound_plan(self, run: Run) -> Plan:
        """Return what an approved run would do, its preview apart.

        :raises AileronError: it could not run, or no sound decision rests on what would use a credential.
        """
        plan = self.requests.plan(run)
        if any(planned.binding is not None for planned in plan.steps):
            await self._sound(run)
        return plan

    async def ready(self, run: Run, preview: Preview | None) -> tuple[Plan, Approval] | None:
        """Return what an approved run would do, and the decision for it, if that still holds; else it is asked anew.

        :param preview: from L{seen_before_effect}.
        :raises VaultLocked, BindingFailed: whether it holds cannot be told now.
        :raises NotYet: it lets the run begin later.
        """
        try:
            approval = await self._sound(run)
            await self._refuse_repetition(run)
            plan = self._as_approved(approval, preview)
            self._grants.check(approval, plan)
        except ApprovalStale as found:
            await self.requests.ask_anew(run, found, preview)
            return None
        return plan, approval

    def verification(self, run: Run, plan: Plan, approval: Approval) -> Verify:
        """Make the check that runs inside the transaction that commits C{executing}.

        :raises VaultLocked, BindingFailed: it cannot be checked now.
        """
        decided = self._decisions.verification(plan.digest(run), approval.mark)

        def verify(run: Run, found: Approval | None) -> None:
            decided(run, found)
            self._grants.in_force(found)

        return verify

    async def spend(self, approval: Approval) -> None:
        """Use the decision, for good, before anything leaves; where it cannot be used it counts no more.

        :raises Conflict: it was used before.
        :raises AileronError: it could not be used.
        """
        try:
            await self._decisions.spend(approval, self._grants.in_force)
        except Conflict:
            raise
        except AileronError:
            await self._decisions.give_up(approval.run)
            raise

    async def _refuse_repetition(self, run: Run) -> None:
        """Refuse to do again what was found out meanwhile to have happened, or may have.

        :raises ApprovalStale: it would do again what was found out meanwhile to have happened, or may have.
        """
        if run.parent_id is not None:
            await self._decisions.refuse_repetition(run.parent_id)

    async def _sound(self, run: Run) -> Approval:
        """Return the decision on record, the files having been read anew.

        :raises ApprovalStale: it is none that counts.
        :raises StateConflict: the run went elsewhere meanwhile.
        """
        self.requests.planner.offerings.refresh()
        approval = await self._runs.table.approval(run.id)
        if approval is None:
            raise NoDecision("No decision is recorded.")
        if approval.run.state is not run.state:
            raise StateConflict(approval.run)
        await self._check(approval)
        return approval

    async def _fetch(self, run: Run, *, before_effect: bool = False) -> Preview | None:
        try:
            return await self.previews.fetch_again(run, before_effect=before_effect)
        except (Paused, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error

    async def _check(self, approval: Approval) -> None:
        """As of L{Decisions.check}; and it must be on record as well, be it of an earlier key.

        One that gave way, while the record still tells of it last, did so shortly before a crash or in the moment that
        it was taken: the vault is told first.
        """
        on_record = await self._decisions.on_record(approval.run, approval)
        try:
            self._decisions.check(approval.run, approval)
        except EarlierKey:
            if on_record:
                raise
        except GaveWay as found:
            if on_record:
                raise ApprovalStale(_INTERRUPTED) from found
            raise
        # guard of promise 2: the record tells of the decision -> WrittenRowsTests.test_unrecorded
        if not on_record:
            raise NoDecision("The audit log has no such decision, or has something after it.")

    def _find_decided(self, approval: Approval, decision: Decision) -> Transition:
        run = approval.run
        # guard of promise 6: the record names who decided -> RecordedTests.test_life,
        #    instead actor = Actor("service", "daemon")
        actor = get_decider(decision)
        now = decision.decided_at or self._runs.events.now()
        waited = int((now - approval.requested_at).total_seconds() * 1000)
        event = self._runs.events.of_run(
            "approval.approved" if decision.approved else "approval.denied",
            run,
            actor,
            digest=decision.digest,
            decision_digest=decision_digest(decision),
            reason=decision.reason,
            wait_ms=waited,
            not_before=None if decision.not_before is None else timestamp(decision.not_before),
            grant=decision.grant_id,
        )
        end = RunState.APPROVED if decision.approved else RunState.DENIED
        return transition(
            run,
            end,
            now,
            event,
            decision=decision,
            reason=decision.reason,
            verify=require_digest(decision.digest),
            start_after=decision.not_before,
        )

    async def _confirm(self, approval: Approval, preview: Preview | None) -> ApprovalRule:
        """Confirm an approval that could run now, as it was shown, its preview fetched just now."""
        try:
            present = approval if preview is None else await self.requests.previewed(approval, preview)
            plan = self.requests.plan_shown(approval)
        except StateConflict as conflict:
            raise make_conflict(conflict.present) from conflict
        except (ApprovalStale, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}", error.details) from error
        if present.digest != approval.digest or plan.digest(approval.run) != approval.digest:
            raise ApprovalStale(f"{present.stale or _OTHERWISE} Review it again.", describe_approval(present))
        if plan.preview is not None and preview is None:
            raise ApprovalStale(f"{_OTHERWISE} Review it again.", describe_approval(approval))
        if plan.lacks is not None:
            raise ApprovalStale(plan.lacks, describe_approval(approval))
        return plan.action.approval

    def _as_approved(self, approval: Approval, preview: Preview | None) -> Plan:
        """Return what would run now, where that is what a sound decision is for.

        :raises ApprovalStale: it is something else, or cannot run.
        """
        try:
            plan = self.requests.plan(approval.run, preview)
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error
        # guard of promise 3: the digest is built anew before the effect -> StillTests
        if plan.digest(approval.run) != approval.digest:
            raise _explain_other(approval, plan)
        return plan


def get_decider(decision: Decision) -> Actor:
    """Tell who decided: a person, or a grant in a person's place."""
    return Actor("human" if decision.grant_id is None else "service", decision.decided_by)


def _check_time(decision: Decision, now: datetime) -> None:
    if decision.not_before is not None and decision.not_before > now + MOST_AHEAD:
        problem = f"at most {MOST_AHEAD.days} days ahead"
        raise InvalidRequest.listing("The start time is too far ahead.", ("/not_before", problem))


def _check_open(approval: Approval, now: datetime) -> None:
    """Pass only where it waits for a decision.

    :raises Conflict: it does not, or no longer.
    """
    # guard of promise 2: only what waits is decided -> NoDecisionTests.test_withdrawn
    if approval.run.state is not RunState.PENDING:
        raise make_conflict(approval.run)
    # guard of promise 2: an approval that has expired is over -> NoDecisionTests.test_expired
    if approval.expires_at is not None and approval.expires_at <= now:
        raise make_conflict(evolve(approval.run, state=RunState.EXPIRED))


def _explain_other(approval: Approval, plan: Plan) -> ApprovalStale:
    """Why a sound decision is not for C{plan}: a file has changed, or else the run's own row."""
    before, after = approval.review, plan.review()
    if before.manifest_digest == after.manifest_digest and before.arguments != after.arguments:
        return NoDecision("The recorded run is not what was approved.")
    return ApprovalStale(describe_difference(approval, plan))
