"""Records decisions, and verifies them again before the effect of the run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from attrs import define, evolve

from aileron.base.converter import to_json
from aileron.base.json import timestamp
from aileron.model.actions import Action, ApprovalRule
from aileron.model.audit import Actor, Event
from aileron.model.authority import NewGrant
from aileron.model.deciders import check_may_approve
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    Conflict,
    InvalidRequest,
    Paused,
    StateConflict,
    StoreUnavailable,
)
from aileron.model.people import ApproverRule
from aileron.model.reviews import Preview
from aileron.model.runs import Approval, Decision, Run, RunState, Transition, Vote
from aileron.model.signing import SignedDecisions

from .approval_requests import ApprovalRequests, describe_approval, describe_difference, require_digest
from .decisions import (
    INTERRUPTED,
    MOST_AHEAD,
    TICK,
    UNUSABLE,
    Decisions,
    DecisionWithdrawn,
    EarlierKey,
    NoDecision,
    NotYet,
    check_signed,
    decision_digest,
    get_decider,
    get_person,
)
from .pauses import Pauses
from .plan import Plan, Planner, PlanOutline
from .previews import PreviewReader
from .runs import RunRepository, Verify, make_conflict, transition
from .votes import Votes, VotesChanged, refuse_second, require_votes

_OTHERWISE = "What would run has just changed."
_NOT_LAST = (
    "This would not be the last approval that is needed, so nothing was decided and no grant was issued: {told}."
)
_MOST_TRIES = 5


class SignatureCheck(Protocol):
    """Verifies the signatures of decisions, and that their keys may approve the action."""

    def admit(self, action: str, run_id: str, decision: Decision, wish: NewGrant | None) -> Decision:
        """Verify the signature that comes with a decision, and return the decision with the verified signature.

        The signature decides this run once. A denial needs no signature.

        :param wish: the grant to create with the approval, or None.
        :raises Forbidden: if the signature is missing or not valid, or its key may not approve this action.
            C{details["passkey"]} is true if a passkey must sign.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of a passkey cannot be recorded.
        """

    def require(self, action: str, decision: Decision) -> None:
        """Require that the verified signature is of a key that may approve this action.

        :raises Forbidden: if it is not.
        """

    def find_objection(self, action: str, signed: SignedDecisions) -> str | None:
        """Return why a stored signature approves nothing any more, or None. Cheap, and safe in any thread."""

    def find_removed_key(self, signed: SignedDecisions) -> str | None:
        """Return words for the key that signed if the key was removed since, or None. Safe in any thread."""


@define(eq=False)
class ApprovalGate:
    """Records the operator's decisions, and verifies them again before the effect. No other class records decisions."""

    _runs: RunRepository
    _planner: Planner
    _requests: ApprovalRequests
    _decisions: Decisions
    _reader: PreviewReader
    _pauses: Pauses
    _approvers: SignatureCheck
    _votes: Votes

    async def admit(self, run_id: str, decision: Decision, wish: NewGrant | None = None) -> Decision:
        """Verify the signature that comes with a decision, and return the decision with the verified signature.

        Call before every other method that gets the decision.

        :param wish: the grant to create with the approval, or None.
        :raises NotFound: if there is no such approval.
        :raises Forbidden: if the signature is not one for exactly this decision, or a passkey must sign.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of a passkey cannot be recorded.
        """
        approval = await self._runs.approval(run_id)
        return self._approvers.admit(approval.run.action, run_id, decision, wish)

    def refuse_unsigned(self, approval: Approval, decision: Decision) -> None:
        """Require the signature that the action in the row needs. The row may have been altered since L{admit}.

        :raises Forbidden: if the key that signed may not approve this action.
        """
        self._approvers.require(approval.run.action, decision)

    async def seen_before_decision(self, run_id: str, decision: Decision) -> Preview | None:
        """Fetch the preview again before an approving decision. Do not hold the run's lock, as fetching takes time.

        :return: the preview, or None if there is none to fetch or the decision is for another digest.
        :raises NotFound: if there is no such approval.
        :raises ApprovalStale: if the run cannot be planned now.
        :raises VaultLocked, BindingFailed, StoreUnavailable, Paused: if the preview cannot be fetched now.
        """
        approval = await self._runs.approval(run_id)
        if not decision.approved or not approval.review.may_have_preview:
            return None
        approval, _ = await self._requests.refresh(run_id)
        if decision.digest != approval.digest or approval.run.state is not RunState.PENDING:
            return None
        return await self._fetch(approval.run)

    async def decide(
        self, run_id: str, decision: Decision, preview: Preview | None, *, must_be_last: bool = False
    ) -> Approval:
        """Verify, sign and record one decision. The caller must hold the run's lock.

        If the run needs the approvals of several people, an approval is stored as a vote until there are enough.

        :param preview: the preview from L{seen_before_decision}.
        :param must_be_last: True to refuse an approval after which the run still needs others.
        :return: the approval after the decision. Its run is still pending if it needs the approvals of others.
        :raises NotFound, Conflict: if no approval is pending, or the person approved it already.
        :raises ApprovalStale: if the decision is for another digest, or the run cannot start as the approval shows.
        :raises Forbidden: if the key that signed, or the person, may not approve this action.
        :raises InvalidRequest: if the start time is too far ahead.
        :raises Paused: if the decision approves and runs of the session are paused.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the decision cannot be signed or recorded now.
        """
        _check_time(decision, self._runs.now())
        tries = _MOST_TRIES
        while True:
            tries -= 1
            try:
                return await self._decide(run_id, decision, preview, must_be_last)
            except VotesChanged:  # on another daemon
                if not tries:
                    raise

    async def _decide(self, run_id: str, decision: Decision, preview: Preview | None, must_be_last: bool) -> Approval:
        looked = self._runs.now()
        approval, plan = await self.open(run_id, decision.digest)
        self.refuse_unsigned(approval, decision)
        if not decision.approved:
            await self._decisions.outdate(approval.run, looked - TICK)  # an approval recorded meanwhile remains valid
            return await self._record(approval, self._decisions.signed(approval.run, decision))
        await self._refuse_repetition(approval.run)
        action = await self._confirm(approval, plan, preview)
        approvers = await self._votes.find_rule(action)
        self._pauses.refuse(approval.run.session_id)
        undo_seconds, decision = action.approval.undo_seconds, evolve(decision, approvers_digest=approvers.digest)
        if approvers.count == 1 or decision.forced:
            signed = self._decisions.signed(approval.run, decision, undo_seconds)
            return await self._record(approval, signed, approvers)
        return await self._vote(evolve(approval, approvers=approvers), decision, undo_seconds, must_be_last)

    async def _vote(self, approval: Approval, decision: Decision, undo_seconds: float, must_be_last: bool) -> Approval:
        """Record one approval of several. The last one approves the run.

        :raises Conflict: if the person approved it already, or others are missing and this one must be the last.
        """
        approvers = approval.approvers or ApproverRule()
        counting = evolve(approval, votes=self._votes.count(approval, approvers))
        refuse_second(decision, counting)
        vote = self._decisions.sign_vote(approval.run, decision)
        votes = (*counting.votes, vote)
        # guard of roles: fewer people than the rule requires approve nothing -> runner.test_votes.CountTests.test_first
        if len(votes) < approvers.count:
            # guard of roles: what is approved with a grant is never one approval of several
            #    -> runner.test_votes.GrantTests.test_lapsed_meanwhile
            if must_be_last:
                raise Conflict(_NOT_LAST.format(told=counting.progress))
            await self._runs.apply_or_refuse(self._find_voted(approval, vote, votes))
            return evolve(await self._runs.approval(approval.run.id), approvers=approvers, votes=votes)
        begins = max(filter(None, (each.not_before for each in votes)), default=None)
        counted = tuple(each.mark_digest for each in votes)
        signed = self._decisions.signed(
            approval.run, evolve(decision, not_before=begins, counted=counted), undo_seconds
        )
        return evolve(await self._record(approval, signed, approvers, vote), votes=votes)

    async def _record(
        self,
        approval: Approval,
        signed: Decision,
        approvers: ApproverRule | None = None,
        vote: Vote | None = None,
    ) -> Approval:
        """Store a signed decision that approves or denies the run, and return the approval with it.

        :param approvers: the rule about the people who may approve, or None for a denial.
        :param vote: the last vote, which is stored as well, or None if one person approves alone.
        """
        verify = (
            self._require_decided(signed)
            if vote is None
            else _both(self._require_decided(signed), require_votes(approval.votes))
        )
        decided = evolve(self._find_decided(approval, signed), approvers=approvers, vote=vote, verify=verify)
        decided = await self._runs.note_superseded(decided, approval.run)
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
            signed=signed.signed,
            approvers_digest=signed.approvers_digest,
            counted=signed.counted,
            forced=signed.forced,
        )

    def _find_voted(self, approval: Approval, vote: Vote, votes: Sequence[Vote]) -> Transition:
        """Return the transition that stores a vote after which others are missing. The run stays pending."""
        run, approvers = approval.run, approval.approvers or ApproverRule()
        event = self._runs.event_of_run(
            "approval.voted",
            run,
            Actor("human", vote.decided_by),
            digest=vote.digest,
            decision_digest=vote.mark_digest,
            reason=vote.reason,
            not_before=None if vote.not_before is None else timestamp(vote.not_before),
            person=vote.person,
            given=len(votes),
            needed=approvers.count,
            **_signature_payload(vote),
        )
        verify = _both(self._require_decided(vote), require_votes(approval.votes))
        return transition(run, RunState.PENDING, vote.decided_at, event, verify=verify, vote=vote, approvers=approvers)

    async def open(self, run_id: str, digest: str | None) -> tuple[Approval, Plan | None]:
        """Return the pending approval of a run, after checking that its digest is C{digest} unless that is None.

        :return: the approval, and the plan that its digest covers, or None if the run cannot be planned.
        :raises NotFound, Conflict: if no approval is pending.
        :raises ApprovalStale: if the pending approval has another digest.
        """
        approval, plan = await self._requests.refresh(run_id)
        _check_open(approval, self._runs.now())
        # guard of promise 3: a decision names the digest that is shown -> ReviewedTests
        if digest not in (None, approval.digest):
            raise ApprovalStale(
                "What would run is no longer what was shown. Review it again.", describe_approval(approval)
            )
        return approval, plan

    async def check_may_grant(self, approval: Approval, action: Action, decision: Decision) -> None:
        """Check that a person may issue a grant with an approval.

        The rule must let the person approve, and no other approval may be missing.

        :raises Forbidden: if the rule does not let the person approve.
        :raises Conflict: if the run would still need the approvals of others.
        :raises ApprovalStale, VaultLocked, BindingFailed, StoreUnavailable: if this cannot be found out now.
        """
        # guard of roles: no grant is issued with a forced approval -> runner.test_forced.ForcedTests.test_grant
        if decision.forced:
            raise Conflict("A forced approval issues no grant. Nothing was decided.")
        approvers = await self._votes.find_rule(action)
        check_may_approve(decision.account, approval.run.owner, approvers)
        votes = self._votes.count(approval, approvers) if approvers.count > 1 else ()
        # guard of roles: a grant needs the last approval -> runner.test_votes.GrantTests.test_last
        if len(votes) + 1 < approvers.count:
            counting = evolve(approval, approvers=approvers, votes=votes)
            raise Conflict(_NOT_LAST.format(told=counting.progress))

    def granted(self, approval: Approval, decision: Decision, rule: ApprovalRule) -> Transition:
        """Return the transition by which a standing grant approves the run. The caller must count the use before.

        :raises VaultLocked, BindingFailed: if the decision cannot be signed now.
        """
        signed = self._decisions.signed(approval.run, decision, rule.undo_seconds)
        return self._find_decided(approval, signed)

    async def seen_before_effect(self, run: Run) -> Preview | None:
        """Fetch the preview again before the effect. Do not hold the run's lock, as fetching takes time.

        :return: the preview, or None if there is none or the approval will be requested again.
        :raises VaultLocked, BindingFailed, StoreUnavailable, Paused: if the preview cannot be fetched now.
        :raises NotYet: if the decision allows only a later start.
        :raises StateConflict: if the stored run is in another state than C{run}.
        """
        try:
            if not self._planner.has_preview(run):
                return None
            await self._sound(run)
            return await self._fetch(run, before_effect=True)
        except (NotYet, Paused, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError:
            return None  # L{ready} then requests another approval

    async def sound_outline(self, run: Run) -> PlanOutline:
        """Return the connectors and credentials that an approved run will use.

        :raises AileronError: if the run cannot be planned, or would use a credential without a valid decision.
        :raises NotYet: if the decision allows only a later start.
        :raises StateConflict: if the stored run is in another state than C{run}.
        """
        outline = self._planner.outline(run.action, run.owner)
        if any(planned.binding is not None for planned in outline.steps):
            await self._sound(run)
        return outline

    async def ready(self, run: Run, preview: Preview | None) -> tuple[Plan, Approval] | None:
        """Return the plan of an approved run and the decided approval.

        If the decision no longer applies, request another approval and return None.

        :param preview: the preview from L{seen_before_effect}.
        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        :raises NotYet: if the decision allows only a later start.
        :raises StateConflict: if the stored run is in another state than C{run}.
        :raises StoreUnavailable: if another request for approval cannot be stored.
        """
        try:
            approval = await self._sound(run)
            await self._refuse_repetition(run)
            plan = self._as_approved(approval, preview)
            self._decisions.check_again(approval, plan)
            approvers = await self._votes.find_rule(plan.action)
            self._votes.verification(approvers)(approval.run, approval)
        except ApprovalStale as found:
            await self._requests.ask_anew(run, found, preview)
            return None
        return plan, evolve(approval, approvers=approvers)

    def verification(self, run: Run, plan: Plan, approval: Approval) -> Verify:
        """Return a check for the transaction that commits C{executing}: decision and grant must still be valid.

        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        """
        decided = self._decisions.verification(plan.digest(run), approval.mark)
        is_enough = self._votes.verification(approval.approvers or ApproverRule())

        def verify(run: Run, found: Approval | None) -> None:
            decided(run, found)
            # guard of signing: the signature is verified in the transaction that begins the effect
            #    -> runner.test_signed.SignedTests.test_meanwhile
            self._check_signature(run, found)
            # guard of roles: the votes are verified in the transaction that begins the effect
            #    -> runner.test_votes.ForgedTests.test_meanwhile
            is_enough(run, found)

        return verify

    def _check_signature(self, run: Run, approval: Approval | None) -> None:
        """Verify the stored signature of an approval. Decisions of grants and of earlier versions have none and pass.

        :raises NoDecision: if the signature is not valid, or not for this approval.
        :raises ApprovalStale: if its key may not approve the action any more.
        """
        signed = None if approval is None else approval.signed
        if approval is None or signed is None:
            return  # the mark, which covers the signature, is that of a decision without one
        check_signed(signed, run.id, approval)
        objection = self._approvers.find_objection(run.action, signed)
        if objection is not None:
            raise ApprovalStale(objection)

    async def spend(self, approval: Approval) -> None:
        """Record in the vault that the decision is used, before anything is sent. If that fails, withdraw the decision.

        :raises Conflict: if the decision was used before.
        :raises AileronError: if the use cannot be recorded.
        """
        try:
            await self._decisions.spend(approval)
        except Conflict:
            raise
        except AileronError:
            await self._decisions.give_up(approval.run)
            raise

    async def _refuse_repetition(self, run: Run) -> None:
        """If the run repeats an uncertain one, refuse if the audit log says that the earlier run happened.

        :raises ApprovalStale: if the earlier run happened, or the contents of an event that may say so are lost.
        """
        if run.parent_id is not None:
            await self._decisions.refuse_repetition(run.parent_id)

    async def _sound(self, run: Run) -> Approval:
        """Read the files again and return the approval of C{run}, after verifying its decision.

        :raises ApprovalStale: if there is no valid decision.
        :raises StateConflict: if the stored run is in another state than C{run}.
        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        :raises NotYet: if the decision allows only a later start.
        :raises NoDecision: if the decision is not valid.
        """
        self._planner.refresh()
        approval = await self._runs.find_approval(run.id)
        if approval is None:
            raise NoDecision("No decision is recorded.")
        if approval.run.state is not run.state:
            raise StateConflict(approval.run)
        await self._check(approval)
        return approval

    async def _fetch(self, run: Run, *, before_effect: bool = False) -> Preview | None:
        try:
            return await self._reader.fetch_again(run, before_effect=before_effect)
        except (Paused, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error

    async def _check(self, approval: Approval) -> None:
        """Verify that the decision is valid and unused, and that the audit log contains it.

        A withdrawal is written to the vault first and to the audit log afterwards. So if the vault says that the
        decision was withdrawn and the log does not, a crash or a race is the cause, not tampering.

        :raises NoDecision: if the decision is not valid, which is a sign of tampering.
        :raises ApprovalStale: if the decision has expired or was withdrawn during a crash or a race.
        :raises NotYet: if the decision allows only a later start.
        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        """
        on_record = await self._decisions.is_recorded(approval.run, approval)
        try:
            self._decisions.check(approval.run, approval)
        except EarlierKey:
            if on_record:
                raise
        except DecisionWithdrawn as found:
            if on_record:
                raise ApprovalStale(INTERRUPTED) from found
            raise
        # guard of promise 2: the audit log contains the decision -> WrittenRowsTests.test_unrecorded
        if not on_record:
            raise NoDecision("The audit log has no such decision, or has something after it.")
        self._check_signature(approval.run, approval)

    def _require_decided(self, decision: Decision | Vote) -> Verify:
        """Return the check for the transaction that commits a decision: of the row's digest and of the signature."""
        unless_changed, signed = require_digest(decision.digest), decision.signed

        def verify(run: Run, approval: Approval | None) -> None:
            unless_changed(run, approval)
            removed = None if signed is None else self._approvers.find_removed_key(signed)
            # guard of signing: no decision is recorded after its key was removed
            #    -> runner.test_signed.PasskeySignedTests.test_removed_meanwhile
            if removed is not None:
                raise ApprovalStale(f"It was signed with {removed} that was just removed. Nothing was decided.")
            if signed is not None and not (isinstance(decision, Decision) and decision.same_as is not None):
                check_signed(signed, run.id, decision)

        return verify

    def _find_decided(self, approval: Approval, decision: Decision) -> Transition:
        run = approval.run
        # guard of promise 6: the audit log names the decider -> RecordedTests.test_life,
        #    instead actor = Actor("service", "daemon")
        actor = get_decider(decision)
        now = decision.decided_at or self._runs.now()
        waited = int((now - approval.requested_at).total_seconds() * 1000)
        event = self._runs.event_of_run(
            "approval.approved" if decision.approved else "approval.denied",
            run,
            actor,
            digest=decision.digest,
            decision_digest=decision_digest(decision),
            reason=decision.reason,
            wait_ms=waited,
            not_before=None if decision.not_before is None else timestamp(decision.not_before),
            grant=decision.grant_id,
            **_votes_payload(decision),
            **_signature_payload(decision),
        )
        events: tuple[Event, ...] = (event,)
        if decision.forced and decision.approved:
            told = self._runs.event_of_run(
                "approval.forced", run, actor, digest=decision.digest, reason=decision.reason
            )
            events = (told, event)
        end = RunState.APPROVED if decision.approved else RunState.DENIED
        return transition(
            run,
            end,
            now,
            *events,
            decision=decision,
            reason=decision.reason,
            verify=self._require_decided(decision),
            start_after=decision.not_before,
        )

    async def _confirm(self, approval: Approval, opened: Plan | None, preview: Preview | None) -> Action:
        """Check that the run could start now exactly as the approval shows it, and return its action.

        :param opened: the plan that the approval's digest covers, from L{open}, or None if there was none.
        :param preview: the preview that was just fetched, or None.
        :raises Conflict: if the run is no longer pending.
        :raises ApprovalStale: if the run cannot start now, or would do something else than what was shown.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the database cannot be used now.
        """
        present, run = approval, approval.run
        try:
            plan = self._planner.plan_shown(approval) if opened is None else opened
            if preview is not None and plan.with_preview(run.effect_key, preview).digest(run) != approval.digest:
                present = await self._requests.previewed(approval, preview)
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
        return plan.action

    def _as_approved(self, approval: Approval, preview: Preview | None) -> Plan:
        """Plan the run with this preview, and return the plan if its digest is the approved one.

        :raises ApprovalStale: if the plan has another digest, or the run cannot be planned.
        """
        try:
            plan = self._planner.plan_run(approval.run, preview)
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error
        # guard of promise 3: the digest is computed again before the effect -> StillTests
        if plan.digest(approval.run) != approval.digest:
            raise _explain_other(approval, plan)
        return plan


def _votes_payload(decision: Decision) -> dict[str, Any]:
    """Return who else approved for the event's payload, or that nobody had to, or an empty dict for a usual decision.

    The votes before the last one are named as their events name them.
    """
    if not decision.counted:
        return {"forced": True} if decision.forced and decision.approved else {}
    return {"votes": decision.counted[:-1], "needed": len(decision.counted), "person": get_person(decision)}


def _both(first: Verify, second: Verify) -> Verify:
    """Return a check that makes both checks."""

    def verify(run: Run, approval: Approval | None) -> None:
        first(run, approval)
        second(run, approval)

    return verify


def _signature_payload(decision: Decision | Vote) -> dict[str, Any]:
    """Return the signature for the event's payload, or an empty dict if nobody signed, for example for a grant.

    The signature on a twin's denial is that of another run, whose id is added.
    """
    signed = {} if decision.signed is None else {"signed": to_json(decision.signed)}
    same_as = decision.same_as if isinstance(decision, Decision) else None
    return signed if same_as is None else {**signed, "same_as": same_as}


def _check_time(decision: Decision, now: datetime) -> None:
    if decision.not_before is not None and decision.not_before > now + MOST_AHEAD:
        problem = f"at most {MOST_AHEAD.days} days ahead"
        raise InvalidRequest.listing("The start time is too far ahead.", ("/not_before", problem))


def _check_open(approval: Approval, now: datetime) -> None:
    """Refuse an approval that is not pending.

    :raises Conflict: if the run is in another state, or the approval has expired.
    """
    # guard of promise 2: only pending runs are decided -> NoDecisionTests.test_withdrawn
    if approval.run.state is not RunState.PENDING:
        raise make_conflict(approval.run)
    # guard of promise 2: an expired approval is not decided -> NoDecisionTests.test_expired
    if approval.expires_at is not None and approval.expires_at <= now:
        raise make_conflict(evolve(approval.run, state=RunState.EXPIRED))


def _explain_other(approval: Approval, plan: Plan) -> ApprovalStale:
    """Return the error for a valid decision that is not for C{plan}.

    It is L{NoDecision} if the arguments differ although the action's file is unchanged: then the run's row was altered.
    """
    before, after = approval.review, plan.review()
    if before.manifest_digest == after.manifest_digest and before.arguments != after.arguments:
        return NoDecision("The recorded run is not what was approved.")
    return ApprovalStale(describe_difference(approval, plan))
