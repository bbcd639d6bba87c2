"""Runs: one invocation of one action, from its first moment to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from attrs import evolve, field, frozen

from aileron.base.json import JSON

from .actions import Offer
from .audit import Actor, Event
from .faults import Fault
from .reviews import Card, Review
from .sessions import Session
from .vault import BindingFlag


class RunState(StrEnum):
    """The state of a run. Which steps between them are legal: L{aileron.runner}'s one table."""

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
        """True once nothing more happens by itself (an C{unknown} is settled by a person)."""
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
"""The states of a run that is approved and waits for what only a person gives."""

NOT_BEGUN = (RunState.APPROVED, *AWAITING)
"""The states of a run that is approved and of which nothing was sent."""


_MINTED = "aileron-"


@frozen
class Call:
    """An invocation as it reaches the runner's door, its caller known, its arguments not yet checked.

    :ivar session: L{None} where the operator calls without one.
    :ivar idempotency_key: 1 to 128 visible ASCII, or L{None}.
    :ivar undoes: the run that it undoes; then it needs the operator's approval even where its action needs none.
    :ivar tool_call: the id of the model's tool call, as the client reports it: 1 to 128 visible ASCII, or L{None}.
    """

    action: str
    arguments: Mapping[str, JSON]
    actor: Actor
    session: Session | None = None
    idempotency_key: str | None = None
    undoes: str | None = None
    tool_call: str | None = None

    @staticmethod
    def mint_key(token: str) -> str:
        """Make an idempotency key that says that no agent chose it.

        :param token: unique; of visible ASCII, and at most 100 characters long.
        """
        return f"{_MINTED}{token}"


@frozen
class Run:
    """One row.

    :ivar id: a ULID; also the id of its approval.
    :ivar arguments: after defaults, as validated.
    :ivar effect_key: minted once, the same for all attempts; steps derive theirs from it.
    :ivar result: C{{"output": …, "steps": {id: output}}} where it completed.
    :ivar reason: of a denial, withdrawal or settlement.
    :ivar audit_id: the event that ended it.
    :ivar asked: the arguments as they were asked for, where the operator has edited them; else L{None}.
    :ivar parent_id: the run whose outcome is unknown and which this one does again.
    :ivar start_after: an approved one does not begin before.
    :ivar undoes: the completed run that this one undoes.
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

    @property
    def asked_for(self) -> Mapping[str, JSON]:
        """The arguments as they were asked for, edited since or not."""
        return self.arguments if self.asked is None else self.asked

    @property
    def repeated_by(self) -> str | None:
        """The newest run that does this one again, if its outcome is unknown; approved or not."""
        details = {} if self.fault is None else self.fault.details
        return str(details["run_again"]) if "run_again" in details else None

    @property
    def superseded_by(self) -> str | None:
        """The approved run that does this one again; its outcome stays unknown, and nobody has to settle it."""
        details = {} if self.fault is None or self.state is not RunState.UNKNOWN else self.fault.details
        return str(details["superseded_by"]) if "superseded_by" in details else None

    def note_repetition(self, event: Event, reason: str = "", **details: JSON) -> RepetitionNote:
        """Make a note on this run about the run that does it again."""
        return RepetitionNote(self.id, event, details, reason)

    @property
    def has_own_key(self) -> bool:
        """True if the agent chose the idempotency key itself, so that it means this request and no other."""
        return self.idempotency_key is not None and not self.idempotency_key.startswith(_MINTED)


@frozen
class Change:
    """One place in which two JSON values differ.

    :ivar path: an RFC 6901 pointer; C{""} is the whole.
    :ivar before: L{None} also where there was nothing, as C{after} where there is nothing now: C{kind} tells.
    :ivar kind: C{added}, C{removed}, C{changed}, or C{more}: others are not listed, as C{after} says.
    """

    path: str
    kind: str
    before: JSON = None
    after: JSON = None


@frozen
class Approval:
    """The question to the operator, and what was said; one for each gated run.

    :ivar digest: binds everything that was shown (see L{aileron.runner}).
    :ivar review: what is shown.
    :ivar stale: why the last decision or view no longer holds, or L{None}.
    :ivar changes: what of the review is otherwise than it was shown before, where it is stale.
    :ivar grant_id: the standing grant that decided, if it was none of the operator's own.
    :ivar mark: what makes the rest a decision: without a sound one it decides nothing.
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


@frozen
class DryRun:
    """The result of working out what a call would send, of which nothing is sent or kept.

    :ivar approval: as it would be shown; its run has a placeholder for its id and its effect key.
    :ivar offer: the action as its file is on disk, trusted or not.
    """

    approval: Approval
    offer: Offer
    cards: tuple[Card, ...]


@frozen
class Assertion:
    """The answer of a passkey.

    :ivar nonce: by which the daemon had asked.
    :ivar credential: as the browser gave it (C{PublicKeyCredential.toJSON}).
    """

    nonce: str
    credential: Mapping[str, JSON] = field(repr=False)


@frozen
class Decision:
    """The operator's word on one approval, naming the digest that was on the page.

    :ivar not_before: the operator wants it done no sooner.
    :ivar assertion: of a passkey, where one was used.
    :ivar decided_at: from here on the runner's: when it was taken, until when it holds, and its mark.
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


@frozen
class Ask:
    """A question that is put up, perhaps anew; it replaces what stood there and forgets an earlier decision."""

    digest: str
    review: Review
    requested_at: datetime
    expires_at: datetime | None = None
    stale: str | None = None
    changes: tuple[Change, ...] = ()


@frozen
class StepRow:
    """One step's end; C{output} where it succeeded."""

    run_id: str
    step_id: str
    position: int
    state: str
    output: JSON = None


@frozen
class AttemptRow:
    """One attempt of one step.  Committed as C{started} before a byte leaves.

    :ivar state: C{started}, C{succeeded}, C{failed}, C{unknown}.
    :ivar number: from 1, per step.
    :ivar answer: what the service answered, if it did and the attempt did not succeed: for the operator, without
        secrets, at most 64 KiB.
    :ivar answer_type: the media type of that.
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
    """One run counted under C{key}; refused where C{most} within the last C{seconds} are counted there already.

    :ivar key: what is counted together: opaque, at most 200 characters, without a value that should not be kept.
    :ivar message: why it would be refused, for the one who reads it.
    """

    key: str
    most: int
    seconds: float
    message: str


@frozen
class RepetitionNote:
    """A note on a run of unknown outcome, written together with a change of the run that does it again.

    The event is always recorded. The row of the earlier run changes only if its outcome is still unknown.

    :ivar run_id: the earlier run.
    :ivar details: added to those of its fault.
    :ivar reason: replaces its reason, unless empty.
    """

    run_id: str
    event: Event
    details: Mapping[str, JSON]
    reason: str = ""

    def applied(self, run: Run) -> Run:
        """Return what the earlier run becomes, if its outcome is still unknown."""
        fault = run.fault or Fault("outcome_unknown", "The outcome is unknown.")
        reason, noted = self.reason or run.reason, fault.with_details(**self.details)
        return evolve(run, changed_at=self.event.at, fault=noted, reason=reason)


@frozen
class Transition:
    """One change of state: applied whole, with its events, or not at all.

    C{result}, C{fault}, C{reason} and C{audit_id} replace the run's, also where they are L{None}; C{edited} and
    C{start_after} where they are given; what is asked anew has none.

    :ivar edited: arguments in the place of the run's; what was asked for at first stays on the row.
    :ivar charges: what it counts against, and may be refused for, inside the transaction.
    :ivar note: written on another run in the same transaction.
    :ivar verify: called inside the transaction with the row as it stands there; what it raises undoes the transition.
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

    def applied(self, run: Run) -> Run:
        """Return what C{run} becomes."""
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
        )


@frozen
class Progress:
    """Progress while a run stays C{executing}: attempts that begin or end, steps that are done."""

    run_id: str
    events: tuple[Event, ...]
    steps: tuple[StepRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    flags: tuple[BindingFlag, ...] = ()
