"""Runs: one invocation of one action, from its creation to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from attrs import evolve, field, frozen

from aileron.base.json import JSON, digest_of_bytes

from .actions import Offer
from .audit import Actor, Event
from .faults import Fault
from .people import OPERATOR, AccountLogin, ApproverRule, Owner
from .reviews import Card, Review
from .sessions import Session
from .signing import SignedDecisions
from .tool_claims import NewClaim, ToolClaim
from .vault import BindingFlag


class RunState(StrEnum):
    """The state of a run. The table of legal transitions is in L{aileron.runner}."""

    RECEIVED = "received"
    PENDING = "pending_approval"
    APPROVED = "approved"
    AWAITING_VAULT = "awaiting_vault"
    AWAITING_CREDENTIAL = "awaiting_credential"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def settled(self) -> bool:
        """True if the run does not change by itself any more. A person can still settle an C{unknown} run."""
        return self in _SETTLED


_SETTLED = frozenset(
    (
        RunState.COMPLETED,
        RunState.FAILED,
        RunState.UNKNOWN,
        RunState.DENIED,
        RunState.CANCELLED,
        RunState.EXPIRED,
    )
)

AWAITING = (RunState.AWAITING_VAULT, RunState.AWAITING_CREDENTIAL)
"""The states of an approved run that waits for a person to unlock the vault or renew a credential."""

NOT_BEGUN = (RunState.APPROVED, *AWAITING)
"""The states of an approved run before its execution starts. Nothing was sent."""


_MINTED = "aileron-"


@frozen
class Call:
    """A call of an action by a known caller, with arguments that are not checked yet.

    :ivar session: the caller's session, or None if the operator calls without one.
    :ivar idempotency_key: 1 to 128 visible ASCII characters, or None.
    :ivar undoes: the id of the run to undo, or None. Such a call always needs the operator's approval.
    :ivar tool_call: the id of the model's tool call from the client: 1 to 128 visible ASCII characters, or None.
    :ivar claim: the claim to store with the run, if the call is a request of the agent's own tool. Every other call,
        and each one over the API, has None.
    :ivar owner: the owner of the run of a call without a session, such as an undo, or None for the operator.
    """

    action: str
    arguments: Mapping[str, JSON]
    actor: Actor
    session: Session | None = None
    idempotency_key: str | None = None
    undoes: str | None = None
    tool_call: str | None = None
    claim: NewClaim | None = None
    owner: Owner | None = None

    @property
    def run_owner(self) -> Owner | None:
        """The owner of the call's run: that of its session, if it has one."""
        return self.owner if self.session is None else self.session.owner

    @staticmethod
    def mint_key(token: str) -> str:
        """Return an idempotency key that is marked as not chosen by an agent.

        :param token: a unique text of at most 100 visible ASCII characters.
        """
        return f"{_MINTED}{token}"


@frozen
class Run:
    """One run, as stored in a row.

    :ivar id: a ULID, which is also the id of its approval.
    :ivar arguments: the validated arguments with defaults.
    :ivar effect_key: the key that all attempts share. The keys of steps are derived from it.
    :ivar result: C{{"output": …, "steps": {id: output}}} if the run completed, else None.
    :ivar reason: the reason of a denial, withdrawal or settlement.
    :ivar audit_id: the id of the audit event that records the end of the run.
    :ivar asked: the original arguments if the operator has edited them, or None.
    :ivar parent_id: the id of the run of unknown outcome that this run repeats.
    :ivar start_after: the earliest start of an approved run.
    :ivar undoes: the id of the completed run that this run undoes.
    :ivar title: one line that says what it does, as the connector's file words it, or empty. For display only.
    :ivar owner: the account for which it was requested, or None for the operator.
    """

    id: str
    action: str
    action_version: str
    manifest_digest: str
    arguments: Mapping[str, JSON]
    state: RunState
    gated: bool
    effect_key: str
    received_at: datetime
    changed_at: datetime
    session_id: str | None = None
    idempotency_key: str | None = None
    result: JSON = None
    fault: Fault | None = None
    reason: str | None = None
    audit_id: str | None = None
    asked: Mapping[str, JSON] | None = None
    parent_id: str | None = None
    start_after: datetime | None = None
    undoes: str | None = None
    title: str = ""
    owner: Owner | None = None

    @property
    def asked_for(self) -> Mapping[str, JSON]:
        """The arguments of the original request, whether or not they were edited since."""
        return self.arguments if self.asked is None else self.asked

    @property
    def repeated_by(self) -> str | None:
        """The id of the newest run that repeats this run of unknown outcome, approved or not, or None."""
        details = {} if self.fault is None else self.fault.details
        return str(details["run_again"]) if "run_again" in details else None

    @property
    def superseded_by(self) -> str | None:
        """The id of the approved run that repeats this one, or None. If set, the outcome needs no settlement."""
        details = {} if self.fault is None or self.state is not RunState.UNKNOWN else self.fault.details
        return str(details["superseded_by"]) if "superseded_by" in details else None

    def note_repetition(self, event: Event, reason: str = "", **details: JSON) -> RepetitionNote:
        """Return a note on this run about the run that repeats it."""
        return RepetitionNote(self.id, event, details, reason)

    @property
    def has_own_key(self) -> bool:
        """True if the agent chose the idempotency key. A second call with this key returns this run."""
        return self.idempotency_key is not None and not self.idempotency_key.startswith(_MINTED)


@frozen
class Change:
    """One difference between two JSON values.

    :ivar path: an RFC 6901 pointer. C{""} is the whole value.
    :ivar before: the old value, or None if there was none. C{after} is the new value, or None if there is none.
    :ivar kind: C{added}, C{removed}, C{changed}, or C{more} if C{after} says how many changes are not listed.
    """

    path: str
    kind: str
    before: JSON = None
    after: JSON = None


@frozen
class Vote:
    """One approval of a run that needs the approvals of several people. It counts only with its mark.

    :ivar person: the ID of the account, or C{operator}. A person has one vote.
    :ivar account: the account as it was at the login, or None for the operator.
    :ivar mark: the vault's authentication of the vote.
    :ivar has_lapsed: True if the account was removed or changed since. The store finds this when it reads the vote.
    """

    run_id: str
    person: str
    digest: str
    decided_by: str
    decided_at: datetime
    not_after: datetime
    reason: str | None = None
    not_before: datetime | None = None
    mark: bytes | None = field(default=None, repr=False)
    signed: SignedDecisions | None = None
    account: AccountLogin | None = None
    has_lapsed: bool = False

    @property
    def approved(self) -> bool:
        """True: a denial is no vote, but ends the run."""
        return True

    @property
    def mark_digest(self) -> str:
        """The SHA-256 of the mark, by which decisions and audit events name the vote."""
        return digest_of_bytes(self.mark or b"")

    @property
    def name(self) -> str:
        """The name of the account, or C{operator}."""
        return OPERATOR if self.account is None else self.account.name


@frozen
class Approval:
    """The approval of one gated run: the request to the operator, and the decision.

    :ivar digest: the digest of everything shown (see L{aileron.runner}).
    :ivar review: the data shown.
    :ivar stale: why the last decision or view is no longer valid, or None.
    :ivar changes: the changes of the review since it was last shown, if it is stale.
    :ivar grant_id: the standing grant that approved it, or None.
    :ivar mark: the authentication of the decision. Without a valid mark the decision does not count.
    :ivar signed: the signed list that contains the decision. None if a grant or an earlier version decided.
    :ivar votes: the approvals of single people, if several are needed. The store returns all that it has, valid or not.
    :ivar approvers: the rule about the people who may approve, or None if it is not known here.
    :ivar approvers_digest: the digest of that rule when it was decided. See L{ApproverRule.digest}.
    :ivar counted: the digests of the votes that the decision counted.
    :ivar forced: True if an administrator approved alone, whatever the rule says.
    """

    run: Run
    digest: str
    review: Review
    requested_at: datetime
    expires_at: datetime | None = None
    stale: str | None = None
    approved: bool | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None
    not_before: datetime | None = None
    not_after: datetime | None = None
    mark: bytes | None = field(default=None, repr=False)
    changes: tuple[Change, ...] = ()
    grant_id: str | None = None
    signed: SignedDecisions | None = None
    votes: tuple[Vote, ...] = ()
    approvers: ApproverRule | None = None
    approvers_digest: str | None = None
    counted: tuple[str, ...] = ()
    forced: bool = False

    def find_counted(self) -> tuple[Vote, ...]:
        """Return the votes that the decision counted, as far as they are there."""
        return tuple(vote for vote in self.votes if vote.mark_digest in self.counted)

    @property
    def progress(self) -> str:
        """The count of several needed approvals, and whose there are: C{1 of 2 approvals: ada}. Else an empty text."""
        needed = 1 if self.approvers is None else self.approvers.count
        if needed == 1 or self.forced:
            return ""
        names = f": {', '.join(vote.name for vote in self.votes)}" if self.votes else ""
        return f"{len(self.votes)} of {needed} approvals{names}"


@frozen
class DryRun:
    """The result of a dry run, in which nothing is sent or stored.

    :ivar approval: the approval as it would be shown. Its run has placeholders for the id and the effect key.
    :ivar offer: the action of the file on disk, trusted or not.
    """

    approval: Approval
    offer: Offer
    cards: tuple[Card, ...]


@frozen
class Assertion:
    """A signature that comes with a decision, not yet verified.

    :ivar statement: the signed list of decisions, see L{aileron.model.signing.write_statement}.
    :ivar signature: the signature by the login's own key in base64url, or None if a passkey signed. A browser writes
        its ECDSA signature as two numbers, not in DER.
    :ivar credential: the answer of a passkey as the browser returns it (C{PublicKeyCredential.toJSON}), or None.
    :ivar text: the text for people that an SSH key signed before the statement. None for other keys.
    """

    statement: str
    signature: str | None = field(default=None, repr=False)
    credential: Mapping[str, JSON] | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)


@frozen
class Decision:
    """The operator's decision on one approval. It names the digest that the page showed.

    :ivar not_before: the earliest start that the operator wants, or None.
    :ivar assertion: the signature that came with the decision, not yet verified, or None.
    :ivar decided_at: when it was decided. The runner sets this field and the following fields.
    :ivar same_as: the id of the denied run that is identical, if this denial follows from its denial.
    :ivar account: the account of the person who decides, as it was at the login, or None for the operator.
    :ivar forced: True if an administrator approves alone, whatever the rule says. It needs a reason.
    :ivar approvers_digest: see L{Approval}. The runner sets this field and the following one.
    :ivar counted: see L{Approval}.
    """

    approved: bool
    digest: str
    decided_by: str
    reason: str | None = None
    not_before: datetime | None = None
    assertion: Assertion | None = None
    decided_at: datetime | None = None
    not_after: datetime | None = None
    mark: bytes | None = field(default=None, repr=False)
    grant_id: str | None = None
    signed: SignedDecisions | None = None
    same_as: str | None = None
    account: AccountLogin | None = None
    forced: bool = False
    approvers_digest: str | None = None
    counted: tuple[str, ...] = ()


@frozen
class Ask:
    """A request for the operator's decision. It replaces the previous request and removes an earlier decision."""

    digest: str
    review: Review
    requested_at: datetime
    expires_at: datetime | None = None
    stale: str | None = None
    changes: tuple[Change, ...] = ()


@frozen
class StepRow:
    """The end of one step, with its C{output} if it succeeded."""

    run_id: str
    step_id: str
    position: int
    state: str
    output: JSON = None


@frozen
class AttemptRow:
    """One attempt of one step. It is committed as C{started} before the first byte is sent.

    :ivar state: C{started}, C{succeeded}, C{failed} or C{unknown}.
    :ivar number: the number of the attempt, from 1 for each step.
    :ivar answer: the service's answer to an attempt that did not succeed, if any: for the operator, without
        secrets, at most 64 KiB.
    :ivar answer_type: the media type of the answer.
    """

    run_id: str
    step_id: str
    number: int
    state: str
    started_at: datetime
    ended_at: datetime | None = None
    fault: Fault | None = None
    sent: bool | None = None
    answer: str | None = None
    answer_type: str | None = None


@frozen
class Charge:
    """A count of one run under C{key}. It is refused if C{most} runs were already counted in the last C{seconds}.

    :ivar key: the opaque key of the count: at most 200 characters, without a value that must not be stored.
    :ivar message: the message of the refusal.
    """

    key: str
    most: int
    seconds: float
    message: str


@frozen
class RepetitionNote:
    """A note on a run of unknown outcome, stored together with a change of the run that repeats it.

    The event is always recorded. The row of the earlier run changes only if its outcome is still unknown.

    :ivar run_id: the earlier run.
    :ivar details: the details that are added to its fault.
    :ivar reason: the new reason, or empty to keep the old one.
    :ivar verify: a function that is called in the transaction with the stored row of the earlier run, or None. If it
        raises, nothing is stored, the change of the other run included.
    """

    run_id: str
    event: Event
    details: Mapping[str, JSON]
    reason: str = ""
    verify: Callable[[Run], None] | None = None

    def applied(self, run: Run) -> Run:
        """Return the run that was repeated, with this note about its repetition in its error and reason.

        Use the result only if the outcome of that run is still unknown.
        """
        fault = run.fault or Fault("outcome_unknown", "The outcome is unknown.")
        reason, noted = self.reason or run.reason, fault.with_details(**self.details)
        return evolve(run, changed_at=self.event.at, fault=noted, reason=reason)


@frozen
class Transition:
    """One change of a run's state. It is stored completely with its events, or not at all.

    C{result}, C{fault}, C{reason} and C{audit_id} replace the run's fields, even with None. C{edited} and
    C{start_after} replace them only if set. An C{ask} clears C{start_after} and sets the title.

    :ivar edited: the new arguments of the run. The row keeps the original arguments.
    :ivar charges: the counts that the transition adds. If one is full, the transition is refused.
    :ivar note: a note on another run, stored in the same transaction.
    :ivar claim: the claim to store with a new run, or None.
    :ivar approvers: the rule about the people who may approve, or None if nothing is approved.
    :ivar vote: the approval of one person to store, if the run needs several. With the last one, there is a decision.
    :ivar verify: a function that is called in the transaction with the stored row. If it raises, nothing is stored.
    """

    run_id: str
    start: RunState
    end: RunState
    at: datetime
    events: tuple[Event, ...]
    result: JSON = None
    fault: Fault | None = None
    reason: str | None = None
    audit_id: str | None = None
    ask: Ask | None = None
    decision: Decision | None = None
    steps: tuple[StepRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    flags: tuple[BindingFlag, ...] = ()
    verify: Callable[[Run, Approval | None], None] | None = None
    edited: Mapping[str, JSON] | None = None
    start_after: datetime | None = None
    charges: tuple[Charge, ...] = ()
    note: RepetitionNote | None = None
    claim: ToolClaim | None = None
    approvers: ApproverRule | None = None
    vote: Vote | None = None

    def applied(self, run: Run) -> Run:
        """Return C{run} after this transition."""
        return evolve(
            run,
            arguments=run.arguments if self.edited is None else self.edited,
            asked=run.asked if self.edited is None else run.asked_for,
            state=self.end,
            changed_at=self.at,
            result=self.result,
            fault=self.fault,
            reason=self.reason,
            audit_id=self.audit_id,
            start_after=None if self.ask is not None else self.start_after or run.start_after,
            title=run.title if self.ask is None else self.ask.review.title,
        )


@frozen
class Progress:
    """The progress of an C{executing} run: attempts that started or ended, and completed steps."""

    run_id: str
    events: tuple[Event, ...]
    steps: tuple[StepRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    flags: tuple[BindingFlag, ...] = ()
