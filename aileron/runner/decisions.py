"""Signs, verifies and uses up decisions.

Their signatures are made with a key in the vault, so no database row can fake them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, evolve, field
from twisted.logger import Logger

from aileron.base.converter import to_json
from aileron.base.json import JSON, digest_of_bytes, timestamp
from aileron.model.audit import Actor
from aileron.model.authority import Grant, GrantState, verdict_of
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    BindingFailed,
    VaultLocked,
)
from aileron.model.interfaces.authority import IControl, IGrants
from aileron.model.interfaces.store import IAudit
from aileron.model.people import OPERATOR
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Decision, Run, Vote
from aileron.model.signing import SignedDecisions, begins_as_signed
from aileron.model.trust import Mark

from .grant_terms import allows, bounds_of_plan, describe_changes
from .plan import Plan
from .runs import EventFactory, Verify
from .tasks import Callback, Timers

_log = Logger()

APPROVAL_HOLDS = timedelta(hours=24)
"""The time in which an approved run must start. After that, another approval is requested."""

MOST_AHEAD = timedelta(days=30)
"""The longest delay that the operator can set for the start of an approved run."""

_VOTE_HOLDS = timedelta(days=7)
"""The time in which the approval of one person counts while those of others are missing."""

_REMEMBERED = MOST_AHEAD + timedelta(days=2)
"""The time for which a withdrawal is stored. It is longer than the lifetime of any decision."""

UNUSABLE = (VaultLocked, BindingFailed)
"""The errors raised if the vault is locked or its file was altered."""

_APPROVED = "approval.approved"
_DECISIVE = (
    _APPROVED,
    "approval.denied",
    "approval.stale",
    "tamper.detected",
    "run.cancelled",
    "execution.started",
    "execution.unknown",
)
_FOUND_OUT = ("run.settled", "execution.reconciled", "execution.late_answer")
_AT_A_TIME = 256
_HAPPENED = "The earlier run turned out to have happened, so this would do it twice. Deny or cancel this one."
_UNREADABLE = (
    "The earlier run may have happened, but the contents of what was found out about it were deleted or altered. Deny "
    "this one; if you still want it done, ask the agent to request it again."
)
INTERRUPTED = (
    "The approval no longer counts: the request was being denied or updated when it was given, or when Aileron last "
    "stopped."
)
TICK = timedelta(microseconds=1)
_NOTHING = (0, "")  # the end of an audit log that was emptied: the next start reports it as tampering
_TAG, _SIGNED_TAG, _VOTE_TAG = "aileron.decision.v1", "aileron.decision-mark.v2", "aileron.vote.v1"

_BY = "grant:"


class NoDecision(ApprovalStale):
    """Raised if a run has no stored decision, or one that the operator did not make or that was used already."""


class DecisionWithdrawn(NoDecision):
    """Raised for a decision that was withdrawn. If no audit event says so, a crash is the cause, not tampering."""


@define(eq=False)
class NotYet(Exception):
    """Raised if a decision allows its run to start only later.

    :ivar at: the earliest start.
    """

    at: datetime


class EarlierKey(ApprovalStale):
    """Raised for a decision that was signed with an earlier key of the vault, so that it must be made again."""


@define(eq=False)
class GrantCheck:
    """Verifies that the grant which approved a run still allows the run. Runs that a person approved always pass."""

    _grants: IGrants
    _events: EventFactory

    def check(self, approval: Approval, plan: Plan) -> None:
        """Verify that the grant allows the run as planned now, unless a person approved the run.

        :raises NoDecision: if the vault has no such grant, or the grant never allowed these arguments or this session.
        :raises ApprovalStale: if the grant no longer allows the run.
        """
        grant = self._in_force(approval)
        if grant is None:
            return
        if not allows(grant, plan.arguments) or not grant.is_meant_for(approval.run.owner, approval.run.session_id):
            raise NoDecision("The grant that approved it does not allow it.")
        why = describe_changes(grant.bound, bounds_of_plan(plan))
        if why is not None:
            raise ApprovalStale(f"The grant that allowed it no longer does. {why}")

    def in_force(self, approval: Approval | None) -> None:
        """Verify that the grant which approved the run is neither revoked nor expired. Can be called in any thread.

        If a person approved the run, or C{approval} is None, do nothing.

        :raises NoDecision: if the vault has no such grant, or the row names another grant than the decision.
        :raises ApprovalStale: if the grant was revoked or has expired.
        """
        if approval is not None:
            self._in_force(approval)

    def _in_force(self, approval: Approval) -> Grant | None:
        by = approval.decided_by or ""
        named = by.removeprefix(_BY) if by.startswith(_BY) else None
        if named != approval.grant_id:
            raise NoDecision("The row names a different grant than the decision.")
        if named is None:
            return None
        grant = self._grants.get(named)
        if grant is None:
            raise NoDecision("The grant that approved it is not in the vault.")
        state = grant.state(self._events.now())
        if state in (GrantState.REVOKED, GrantState.OVER):
            how = "was revoked" if state is GrantState.REVOKED else "is over"
            raise ApprovalStale(f"The grant that allowed it {how}.")
        return grant


@define(eq=False)
class Decisions:
    """Signs and verifies decisions, and records their use in the vault, where no database row can undo it."""

    _control: IControl
    _audit: IAudit
    _events: EventFactory
    _undo: UndoWindow
    _grants: GrantCheck
    _owed: dict[str, datetime] = field(factory=dict, init=False)  # by run, withdrawals not yet written to the vault

    def signed(self, run: Run, decision: Decision, undo_seconds: float = 0.0) -> Decision:
        """Return C{decision} with its times and signature, and delay an approved run for C{undo_seconds}.

        The decision's C{not_before} becomes its own value or the end of C{undo_seconds}, whichever is later.

        :param undo_seconds: how long the operator can undo the decision.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        begins = _begins_at(decision, self._events.now(), timedelta(seconds=undo_seconds))
        at = self._find_time(run)
        while self._control.spent(mark := self._control.sign(_statement(run, _add_times(decision, at, begins)))):
            at += TICK  # an equal decision was made and used at the same time
        self._undo.hold(run.id, undo_seconds)  # before the commit, so that nothing begins between the two
        return evolve(_add_times(decision, at, begins), mark=mark)

    def sign_vote(self, run: Run, decision: Decision) -> Vote:
        """Return a person's approval as a vote on a run that needs several approvals, with its times and mark.

        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        at = self._find_time(run)
        vote = Vote(
            run.id,
            get_person(decision),
            decision.digest,
            decision.decided_by,
            at,
            at + _VOTE_HOLDS,
            decision.reason,
            decision.not_before,
            signed=decision.signed,
            account=decision.account,
        )
        return evolve(vote, mark=self._control.sign(_vote_statement(run, vote)))

    def is_valid_vote(self, approval: Approval, vote: Vote) -> bool:
        """Return whether a vote is a valid one on what an approval shows, neither expired nor used nor withdrawn.

        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        if vote.not_after <= self._events.now() or self._is_spent(vote) or self._is_outdated(approval.run, vote):
            return False
        return self.vote_verification()(approval, vote)

    def _is_spent(self, vote: Vote) -> bool:
        return vote.mark is not None and self._control.spent(vote.mark)

    def vote_verification(self) -> Callable[[Approval, Vote], bool]:
        """Return a function that tells whether a vote is authentic and on what an approval shows. Safe in any thread.

        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        verifier = self._control.verifier()

        def verify(approval: Approval, vote: Vote) -> bool:
            run = approval.run
            # guard of roles: a vote is for what was shown -> runner.test_votes.ForgedTests.test_other_digest
            if vote.run_id != run.id or vote.digest != approval.digest:
                return False
            return verifier(_vote_statement(run, vote), vote.mark) is Mark.SOUND

        return verify

    def _find_time(self, run: Run) -> datetime:
        """Return the present time, or a later one if every decision up to it was withdrawn."""
        at, outdated, forgotten = self._events.now(), self._control.outdated(run.id), self._control.forgotten()
        if outdated is not None:
            at = max(at, outdated - _REMEMBERED + TICK)  # later than the decision that it replaces
        return at if forgotten is None else max(at, forgotten - APPROVAL_HOLDS + TICK)

    def check(self, run: Run, approval: Approval) -> None:
        """Verify that C{approval} contains a valid decision on C{run} that was neither used nor withdrawn.

        :raises NoDecision: if there is no valid decision, or it was used.
        :raises DecisionWithdrawn: if the decision was withdrawn.
        :raises ApprovalStale: if the decision has expired or was signed with an earlier key.
        :raises NotYet: if the decision allows only a later start.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        _check_mark(self._control.verifier(), self._events.now(), run, approval)
        # guard of promise 3: a used decision is invalid -> StillTests.test_once_unrecorded
        if approval.mark is not None and self._control.spent(approval.mark):
            raise NoDecision("The recorded decision was already used.")
        if self._is_outdated(run, approval):
            raise DecisionWithdrawn("The recorded decision was already withdrawn.")

    def has_valid_approval(self, run: Run, approval: Approval) -> bool:
        """Return whether an approval approves a run with a valid signature, used or not.

        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        verdict = self._control.verifier()(_statement(run, approval), approval.mark)
        return approval.approved is True and verdict is Mark.SOUND

    def _is_outdated(self, run: Run, approval: Approval | Vote) -> bool:
        decided_at, ends = approval.decided_at, approval.not_after
        if decided_at is None or ends is None:
            return True
        gave_way = max(filter(None, (self._control.outdated(run.id), self._owed.get(run.id))), default=None)
        if gave_way is not None and decided_at <= gave_way - _REMEMBERED:
            return True
        forgotten = self._control.forgotten()
        return forgotten is not None and ends <= forgotten

    async def is_recorded(self, run: Run, approval: Approval) -> bool:
        """Return whether the audit log contains the approval's decision to approve, with no later event that ends it.

        Events of older versions of Aileron do not name the decision. They match any decision with the same digest.

        :raises StoreUnavailable: if the audit log cannot be read.
        """
        newest = (await self._audit.list(AuditQuery(run_id=run.id, types=_DECISIVE, limit=1))).items
        if not newest or newest[0].event.type != _APPROVED or newest[0].altered:
            return False
        payload, name = newest[0].event.payload, decision_digest(approval)
        return payload.get("digest") == approval.digest and payload.get("decision_digest", name) == name

    async def refuse_repetition(self, run_id: str) -> None:
        """Refuse to repeat an uncertain run if the audit log says that it happened. The run's row is not consulted.

        :raises ApprovalStale: if the run happened, or the contents of an event that may say so were deleted or altered.
        :raises StoreUnavailable: if the audit log cannot be read.
        """
        query: AuditQuery | None = AuditQuery(run_id=run_id, types=_FOUND_OUT, limit=_AT_A_TIME)
        while query is not None:
            page = await self._audit.list(query)
            for record in page.items:
                is_lost = record.pruned or record.altered
                if is_lost or _is_whole(record.event.payload):
                    raise ApprovalStale(_UNREADABLE if is_lost else _HAPPENED, {"parent_id": run_id})
            query = None if page.cursor is None else evolve(query, cursor=page.cursor)

    def verification(self, digest: str, mark: bytes | None) -> Verify:
        """Return a check for the transaction that commits C{executing}: the row must still contain this decision.

        If a grant made the decision, it must still be in force.

        :param digest: the digest that the decision must be for.
        :param mark: the signature of the decision.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        verifier, now = self._control.verifier(), self._events.now()

        def verify(run: Run, approval: Approval | None) -> None:
            found = _check_mark(verifier, now, run, approval)
            if found.digest != digest or found.mark != mark:
                raise NoDecision("The recorded decision is for something else.")
            self._grants.in_force(approval)

        return verify

    def check_again(self, approval: Approval, plan: Plan) -> None:
        """Verify that what approved the run still does: the grant, or the votes of people, none of which was used.

        :raises NoDecision: if a vote was used, or the vault has no such grant.
        :raises ApprovalStale: if the grant no longer allows the run, or a vote was withdrawn: a denial or an edit on
            another daemon came at the moment of the last approval.
        :raises VaultLocked, BindingFailed: if this cannot be verified now.
        """
        self._grants.check(approval, plan)
        for vote in approval.find_counted():
            # guard of roles: a vote is used once -> runner.test_votes.ForgedTests.test_used_vote
            if self._is_spent(vote):
                raise NoDecision("An approval of a person was used already.")
            # guard of roles: a vote that was withdrawn while another daemon counted it begins nothing
            #    -> runner.test_votes.AtOnceTests.test_withdrawn_meanwhile
            if self._is_outdated(approval.run, vote):
                raise ApprovalStale(INTERRUPTED)

    async def spend(self, approval: Approval) -> None:
        """Record in the vault that the decision is used, before anything is sent.

        If a grant that made it is not in force any more, nothing is recorded.

        :raises NoDecision: if there is no decision.
        :raises Conflict: if the decision was already used.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use could not be recorded.
        """
        head = await self._audit.head()
        if approval.mark is None or approval.not_after is None or head is None:
            raise NoDecision("No decision is recorded.")
        self._grants.in_force(approval)
        if approval.counted:  # the votes of others as well, whose marks are not that of the decision
            self._control.outdate(approval.run.id, self._events.now() + _REMEMBERED, *head)
        # guard of promise 3: a decision is used before anything is sent -> StillTests.test_once_while_it_begins,
        #    instead self._control.seal(*head)
        self._control.spend(approval.mark, approval.not_after, *head)

    async def outdate(self, run: Run, up_to: datetime) -> None:
        """Withdraw every decision on a run made up to C{up_to}, regardless of what the run's row says now or later.

        :raises VaultLocked, BindingFailed, StoreUnavailable: if the withdrawal could not be recorded.
        """
        await self._outdate(run.id, up_to + _REMEMBERED)

    async def give_up(self, run: Run) -> None:
        """Withdraw every decision on a run made up to now. If the vault refuses that now, L{settle_up} retries."""
        self._owed[run.id] = self._events.now() + _REMEMBERED
        await self.settle_up()
        if run.id in self._owed:
            _log.warn(
                "the withdrawal of decisions on run {run} is not in the vault yet: they apply again after a restart",
                run=run.id,
            )

    @property
    def owing(self) -> bool:
        """Return True if a withdrawal of decisions could not be written yet, so that L{settle_up} must write it."""
        return bool(self._owed)

    async def settle_up(self) -> None:
        """Write the withdrawals that L{give_up} could not write. If this fails, the next call retries."""
        with suppress(AileronError):
            for run_id, until in list(self._owed.items()):
                await self._outdate(run_id, until)

    async def _outdate(self, run_id: str, until: datetime) -> None:
        head = await self._audit.head()
        self._control.outdate(run_id, until, *(head or _NOTHING))
        self._owed.pop(run_id, None)


def decision_digest(decided: Approval | Decision) -> str:
    """Compute the SHA-256 of a decision's signature, by which its audit event names the decision."""
    return digest_of_bytes(decided.mark or b"")


def get_person(decision: Decision) -> str:
    """Return the person who decides: the ID of the account, or C{operator}, whatever the login and the key."""
    return OPERATOR if decision.account is None else decision.account.account


def _begins_at(decision: Decision, now: datetime, undo: timedelta) -> datetime | None:
    """Return when the approved run may start, by the wall clock.

    Return None for a denial or a run that may start at once.
    """
    begins = max(now + undo, decision.not_before or now)
    return begins if decision.approved and begins > now else None


def _add_times(decision: Decision, at: datetime, begins: datetime | None) -> Decision:
    """Return C{decision} with three times: of the decision, of the earliest start, and of the decision's expiry."""
    ends = max(at, begins or at) + APPROVAL_HOLDS
    return evolve(decision, decided_at=at, not_before=begins, not_after=ends)


def _statement(run: Run, decided: Approval | Decision) -> Mapping[str, JSON]:
    """Return the values that the vault's signature of a decision covers.

    If a person's key has signed the decision, the digest of that signature is one of them.
    """
    unsigned = {**_unsigned_statement(run, decided), **_several_statement(decided)}
    # guard of signing: a mark binds the signature -> runner.test_signed.SignedTests.test_row
    if decided.signed is not None:
        return {**unsigned, "tag": _SIGNED_TAG, "signed": decided.signed.digest}
    return unsigned


def _vote_statement(run: Run, vote: Vote) -> Mapping[str, JSON]:
    """Return the values that the vault's mark of a vote covers. No mark of a decision is one of a vote."""
    return {
        "tag": _VOTE_TAG,
        "run": run.id,
        "effect_key": run.effect_key,
        "digest": vote.digest,
        # guard of roles: a vote is that of one person -> runner.test_votes.ForgedTests.test_other_person
        "person": vote.person,
        "decided_by": vote.decided_by,
        "decided_at": timestamp(vote.decided_at),
        "not_before": _moment(vote.not_before),
        "not_after": timestamp(vote.not_after),
        "reason": vote.reason,
        "signed": None if vote.signed is None else vote.signed.digest,
        # guard of roles: a vote is that of an account with its role -> runner.test_votes.ForgedTests.test_other_role
        "account": None if vote.account is None else to_json(vote.account),
    }


def _several_statement(decided: Approval | Decision) -> dict[str, JSON]:
    """Return what the mark of a decision covers about the other people. It is empty if one person decides alone."""
    told: dict[str, JSON] = {}
    if decided.approvers_digest is not None:
        told["approvers"] = decided.approvers_digest
    if decided.counted:
        told["votes"] = list(decided.counted)
    # guard of roles: a row that says that it was forced was forced -> runner.test_votes.ForgedTests.test_too_few
    if decided.forced:
        told["forced"] = True
    return told


def _unsigned_statement(run: Run, decided: Approval | Decision) -> Mapping[str, JSON]:
    return {
        "tag": _TAG,
        # guard of promise 2: signature and digest cover the run's id -> WrittenRowsTests.test_copied
        "run": run.id,
        "effect_key": run.effect_key,
        # guard of promise 3: the signature covers the digest -> StillTests.test_digest_and_action
        "digest": decided.digest,
        # guard of promise 2: the signature covers approval or denial -> WrittenRowsTests.test_denial_turned
        "approved": decided.approved,
        # guard of promise 3: the signature covers the decider -> StillTests.test_mark_binds
        "decided_by": decided.decided_by,
        "decided_at": _moment(decided.decided_at),
        # guard of promise 3: the signature covers the earliest start -> StillTests.test_mark_binds
        "not_before": _moment(decided.not_before),
        # guard of promise 3: the signature covers the expiry -> StillTests.test_mark_binds
        "not_after": _moment(decided.not_after),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def _check_mark(
    verifier: Callable[[Mapping[str, JSON], bytes | None], Mark],
    now: datetime,
    run: Run,
    approval: Approval | None,
) -> Approval:
    if approval is None or approval.approved is not True or approval.mark is None:
        raise NoDecision("No decision is recorded.")
    verdict = verifier(_statement(run, approval), approval.mark)
    # guard of promise 3: a decision signed with an earlier key is invalid -> StillTests.test_key
    if verdict is Mark.EARLIER:
        raise EarlierKey("It was approved under an earlier vault key.")
    if (
        # guard of promise 2: the signature of a decision is valid -> WrittenRowsTests.test_forged_whole
        verdict is not Mark.SOUND or approval.not_after is None
    ):
        raise NoDecision("The signature of the recorded decision is invalid.")
    # guard of promise 3: a decision expires -> StillTests.test_too_old
    if now > approval.not_after:
        raise ApprovalStale("It was approved more than 24 hours ago and had not started.")
    if approval.not_before is not None and now < approval.not_before:
        raise NotYet(approval.not_before)
    return approval


def _is_whole(told: Mapping[str, JSON]) -> bool:
    return told.get("happened") is True and told.get("last", True) is True


@define(eq=False)
class UndoWindow:
    """Delays approved runs until their start time, and until the operator can no longer undo the decision.

    Two clocks are used. The wall clock determines the start time, which the decision's signature covers. The time to
    undo must also have passed on a monotonic clock, unless the daemon was restarted meanwhile. So setting the wall
    clock forward does not shorten this time. Setting the wall clock back makes a run wait longer.

    :param monotonic: seconds of a monotonic clock.
    """

    _timers: Timers
    _events: EventFactory
    _monotonic: Callable[[], float]
    _held: dict[str, float] = field(factory=dict, init=False)  # by run, until when on the monotonic clock

    def hold(self, run_id: str, seconds: float) -> None:
        """Delay an approved run for C{seconds}, in which the operator can undo the decision."""
        now = self._monotonic()
        self._held = {held: until for held, until in self._held.items() if until > now}
        if seconds > 0:
            self._held[run_id] = now + seconds

    def waits(self, run: Run, ring: Callback) -> bool:
        """Return whether an approved run must not start yet. If so, schedule a call of C{ring} at its start time."""
        at = self._begins(run)
        if at <= self._events.now():
            return False
        self._timers.watch(run.id, at, ring)
        return True

    def wait(self, run_id: str, at: datetime, ring: Callback) -> None:
        """Call C{ring} with the run's id at the time C{at}, even if the run has changed meanwhile."""
        self._timers.watch(run_id, at, ring)

    def _begins(self, run: Run) -> datetime:
        """Return the time on the wall clock at which the run may start."""
        now = self._events.now()
        left = max(0.0, self._held.get(run.id, 0.0) - self._monotonic())
        return max(run.start_after or now, now + timedelta(seconds=left))


def name_decider(grant: Grant) -> str:
    """Return the name of C{grant} as the decider, which the decision's signature covers."""
    return f"{_BY}{grant.id}"


def get_decider(decision: Decision) -> Actor:
    """Return the actor of a decision: a person, or a service if a grant decided."""
    return Actor("human" if decision.grant_id is None else "service", decision.decided_by)


def check_signed(signed: SignedDecisions, run_id: str, decided: Approval | Decision | Vote) -> None:
    """Verify that a signature is valid and for this decision on a run. Cheap, and safe in any thread.

    :raises NoDecision: if it is not.
    """
    try:
        item = signed.verified().of(run_id)
    except (ValueError, RecursionError) as error:
        raise NoDecision("The signature of the recorded decision is invalid.") from error
    said = verdict_of(decided.approved is True, forced=not isinstance(decided, Vote) and decided.forced)
    if item is None or (item["digest"], item["verdict"], item["reason"]) != (decided.digest, said, decided.reason):
        raise NoDecision("The recorded decision is not what was signed.")
    # guard of signing: nothing begins before the signed time -> runner.test_signed.SignedTests.test_early
    begins = decided.not_before or decided.decided_at
    if decided.approved is True and not begins_as_signed(item["not_before"], _moment(begins)):
        raise NoDecision("The recorded decision begins earlier than was signed.")
