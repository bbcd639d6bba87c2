"""Changes runs: which changes are legal, the events that record them, and the rows; who waits is told last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.base.converter import to_json
from aileron.base.json import JSON, compact, utc
from aileron.model.audit import DAEMON, Actor, Event, Record
from aileron.model.authority import PendingLimits
from aileron.model.errors import Conflict, NotFound, StateConflict, StoreUnavailable
from aileron.model.faults import Fault
from aileron.model.interfaces.store import IAudit, IRuns
from aileron.model.queries import AuditQuery, Page, RunQuery
from aileron.model.runs import Approval, AttemptRow, Charge, Progress, Run, RunState, StepRow, Transition

from .tasks import ResultWaiters

_R = RunState

Verify = Callable[[Run, Approval | None], None]
"""A check inside the transaction that changes a run: it raises where the change must not be."""


TRANSITIONS: tuple[tuple[RunState, str, RunState, str], ...] = (
    # from, the type of the last event that is recorded with the change, to, by whose act
    (_R.RECEIVED, "", _R.APPROVED, "agent"),
    (_R.RECEIVED, "run.approved", _R.APPROVED, "daemon"),
    (_R.RECEIVED, "approval.requested", _R.PENDING, "agent"),
    (_R.PENDING, "approval.previewed", _R.PENDING, "service"),
    (_R.PENDING, "approval.stale", _R.PENDING, "daemon"),
    (_R.PENDING, "approval.modified", _R.PENDING, "operator"),
    (_R.PENDING, "approval.approved", _R.APPROVED, "operator or grant"),
    (_R.PENDING, "approval.denied", _R.DENIED, "operator"),
    (_R.PENDING, "run.cancelled", _R.CANCELLED, "agent or operator"),
    (_R.PENDING, "approval.expired", _R.EXPIRED, "daemon"),
    (_R.APPROVED, "approval.stale", _R.PENDING, "daemon"),
    (_R.APPROVED, "tamper.detected", _R.PENDING, "daemon"),
    (_R.APPROVED, "run.scheduled", _R.APPROVED, "service"),
    (_R.APPROVED, "run.awaiting_vault", _R.AWAITING_VAULT, "daemon"),
    (_R.APPROVED, "run.awaiting_credential", _R.AWAITING_CREDENTIAL, "daemon"),
    (_R.APPROVED, "execution.started", _R.EXECUTING, "daemon"),
    (_R.APPROVED, "run.cancelled", _R.CANCELLED, "agent, operator or daemon"),
    (_R.AWAITING_VAULT, "run.resumed", _R.APPROVED, "operator"),
    (_R.AWAITING_VAULT, "run.cancelled", _R.CANCELLED, "agent or operator"),
    (_R.AWAITING_VAULT, "approval.stale", _R.PENDING, "daemon"),
    (_R.AWAITING_CREDENTIAL, "run.resumed", _R.APPROVED, "operator"),
    (_R.AWAITING_CREDENTIAL, "run.cancelled", _R.CANCELLED, "agent or operator"),
    (_R.AWAITING_CREDENTIAL, "approval.stale", _R.PENDING, "daemon"),
    (_R.EXECUTING, "execution.succeeded", _R.COMPLETED, "service"),
    (_R.EXECUTING, "execution.failed", _R.FAILED, "service or daemon"),
    (_R.EXECUTING, "execution.unknown", _R.UNKNOWN, "daemon"),
    (_R.UNKNOWN, "execution.late_answer", _R.COMPLETED, "service"),
    (_R.UNKNOWN, "execution.reconciled", _R.COMPLETED, "daemon or operator"),
    (_R.UNKNOWN, "run.settled", _R.COMPLETED, "operator"),
    (_R.UNKNOWN, "execution.late_answer", _R.FAILED, "service"),
    (_R.UNKNOWN, "execution.reconciled", _R.FAILED, "daemon or operator"),
    (_R.UNKNOWN, "run.settled", _R.FAILED, "operator"),
    (_R.UNKNOWN, "execution.late_answer", _R.UNKNOWN, "service"),
    (_R.UNKNOWN, "execution.reconciled", _R.UNKNOWN, "daemon or operator"),
)
"""Every legal change of state; L{transition} refuses all others.  C{doc/architecture.md} says when each happens."""

_LEGAL = frozenset((start, event, end) for start, event, end, _ in TRANSITIONS)


def transition(run: Run, end: RunState, at: datetime, *events: Event, **changes: Any) -> Transition:
    """Build a change of C{run} to C{end}, recorded by C{events}; the last is the C{audit_id} of an end that it reaches.

    A reason once given stays until another one is given or the approval is requested again.

    :param changes: further fields of L{Transition}.
    :raises ValueError: no row of L{TRANSITIONS} allows the change, recorded by this last event.
    """
    event = events[-1].type if events else ""
    if (run.state, event, end) not in _LEGAL:
        raise ValueError(f"a run never goes from {run.state.value} to {end.value} by {event or 'no event'}")
    if end.settled and end is not run.state:
        changes["audit_id"] = events[-1].id
    changes.setdefault("audit_id", run.audit_id if end is run.state else None)
    changes.setdefault("reason", None if "ask" in changes else run.reason)
    return Transition(run_id=run.id, start=run.state, end=end, at=at, events=events, **changes)


def with_tool_call(opening: Transition, tool_call: str | None) -> Transition:
    """Return C{opening} with the id of the model's tool call, if there is one, in the payload of its first event."""
    if tool_call is None:
        return opening
    first, *others = opening.events
    named = evolve(first, payload={**first.payload, "tool_call": tool_call})
    return evolve(opening, events=(named, *others))


@frozen
class EventFactory:
    """Creates the audit events of the runner.

    :param ids: a fresh ULID at each call.
    """

    _clock: IReactorTime
    _ids: Callable[[], str]

    def now(self) -> datetime:
        """Return the current time."""
        return utc(self._clock.seconds())

    def fresh_id(self) -> str:
        """Return a new ULID."""
        return self._ids()

    def of_run(
        self,
        type_: str,
        run: Run,
        actor: Actor = DAEMON,
        fault: Fault | None = None,
        connector: str | None = None,
        **payload: JSON,
    ) -> Event:
        """Return an event about C{run}.  C{payload} holds no secret; a C{fault} is recorded whole."""
        if fault is not None:
            payload["failure"] = to_json(fault)
        return Event(
            id=self._ids(),
            type=type_,
            at=self.now(),
            actor=actor,
            payload={"effect_key": run.effect_key, **payload},
            run_id=run.id,
            session_id=run.session_id,
            action=run.action,
            connector=connector,
            failure_class=None if fault is None else fault.kind,
        )

    def of_home(self, type_: str, actor: Actor = DAEMON, **payload: JSON) -> Event:
        """Return an event that concerns no run.  C{payload} holds no secret."""
        return Event(id=self._ids(), type=type_, at=self.now(), actor=actor, payload=payload)


T = TypeVar("T")

_log = Logger()
_STORE_PAUSE_SECONDS = 1.0


@define(eq=False)
class RunRepository:
    """Reads and changes stored runs, records events, and notifies callers that wait for a run to end.

    :ivar table: where runs are kept, for their readers.
    :ivar audit: the record, for what concerns no change of a run's state.
    :ivar events: makes what is put on record.
    :param pending_limits: how many may wait for a decision at once.
    """

    table: IRuns
    audit: IAudit
    events: EventFactory
    _clock: IReactorTime
    _pending_limits: PendingLimits
    _waiters: ResultWaiters[str, Run] = field(init=False)
    _in_doubt: list[Callable[[Run], None]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._waiters = ResultWaiters(self._clock)

    def now(self) -> datetime:
        """Return the current time."""
        return self.events.now()

    def fresh_id(self) -> str:
        """Return a new ULID."""
        return self.events.fresh_id()

    def event_of_run(
        self,
        type_: str,
        run: Run,
        actor: Actor = DAEMON,
        fault: Fault | None = None,
        connector: str | None = None,
        **payload: JSON,
    ) -> Event:
        """Return an audit event about C{run}, with a fresh id and the current time."""
        return self.events.of_run(type_, run, actor, fault, connector, **payload)

    def event_of_home(self, type_: str, actor: Actor = DAEMON, **payload: JSON) -> Event:
        """Return an audit event that concerns no run, with a fresh id and the current time."""
        return self.events.of_home(type_, actor, **payload)

    async def record(self, *events: Event) -> None:
        """Append C{events} to the audit log."""
        await self.audit.append(*events)

    def follow(self, told: Callable[[Run], None]) -> None:
        """Register C{told}, which is called with each run that becomes C{unknown}, after the commit."""
        self._in_doubt.append(told)

    async def receive(self, run: Run, transitions: Sequence[Transition]) -> tuple[Run, bool]:
        """Store a new run with its first transitions, unless too many are pending; see L{IRuns.receive}."""
        return await self.table.receive(run, transitions, self._pending_limits)

    async def apply(self, *transitions: Transition) -> Run:
        """Apply C{transitions}, then notify the callers that wait for the run to end.

        :raises StateConflict: somebody else was faster.
        """
        run = await self.table.apply(*transitions)
        if run.state.settled:
            # guard of promise 4: who waits is told -> KeptTests.test_waiter
            self._waiters.tell(run.id, run)
        if run.state is RunState.UNKNOWN is not transitions[0].start:
            for told in self._in_doubt:
                told(run)
        return run

    async def apply_or_refuse(self, *transitions: Transition) -> Run:
        """Apply C{transitions} as L{apply} does, but raise an error that names the present state.

        :raises Conflict: somebody else was faster.
        """
        try:
            return await self.apply(*transitions)
        except StateConflict as conflict:
            raise make_conflict(conflict.present) from conflict

    async def note_superseded(self, decided: Transition, run: Run) -> Transition:
        """Return C{decided} with a note on the run that C{run} does again, if there is one and C{run} is approved.

        With that note nobody has to settle the earlier run.
        """
        earlier = None if run.parent_id is None else await self.table.get(run.parent_id)
        if earlier is None or decided.end is not RunState.APPROVED:
            return decided
        event = self.events.of_run("run.superseded", earlier, decided.events[-1].actor, by=run.id)
        return evolve(decided, note=earlier.note_repetition(event, superseded_by=run.id))

    async def insist(self, run_id: str, write: Callable[[], Awaitable[T]]) -> T:
        """Return the result of C{write}, retried for as long as the database refuses.

        :param run_id: what it is about, for the log.
        """
        while True:
            try:
                return await write()
            # guard of promise 4: an end is written however long the database refuses -> KeptTests.test_end_is_written
            except StoreUnavailable:
                _log.warn("what became of run {run} cannot be written yet", run=run_id)
                await deferLater(self._clock, _STORE_PAUSE_SECONDS)

    async def amend(self, run: Run, changed: Callable[[Run], Transition], events: Sequence[Event]) -> Run:
        """Apply to C{run} what C{changed} makes of it as it stands, while it is C{unknown}; else only record C{events}.

        :param changed: its transition verifies that nobody changes the row meanwhile.
        """
        return await self.insist(run.id, lambda: self._amend(run, changed, events))

    async def _amend(self, present: Run, changed: Callable[[Run], Transition], events: Sequence[Event]) -> Run:
        while present.state is RunState.UNKNOWN:
            try:
                return await self.apply(changed(present))
            except StateConflict as conflict:
                present = conflict.present
            except NotFound:
                break
        await self.audit.append(*events)
        return present

    async def run(self, run_id: str) -> Run:
        """Return the run.

        :raises NotFound: there is none.
        """
        run = await self.table.get(run_id)
        if run is None:
            raise NotFound("There is no such run.")
        return run

    async def all(self, query: RunQuery) -> AsyncIterator[Run]:
        """Yield every run that C{query} asks for, page by page."""
        while True:
            page = await self.table.list(query)
            for run in page.items:
                yield run
            if page.cursor is None:
                return
            query = evolve(query, cursor=page.cursor)

    async def approval(self, run_id: str) -> Approval:
        """Return the approval.

        :raises NotFound: there is none.
        """
        approval = await self.table.approval(run_id)
        if approval is None:
            raise NotFound("There is no such approval.")
        return approval

    async def find_approval(self, run_id: str) -> Approval | None:
        """Return the approval of a gated run, or None if there is none."""
        return await self.table.approval(run_id)

    async def find_by_key(self, session_id: str | None, action: str, idempotency_key: str) -> Run | None:
        """Return the run that used this idempotency key in the last seven days, or None if there is none."""
        return await self.table.find_by_key(session_id, action, idempotency_key)

    async def list_runs(self, query: RunQuery) -> Page[Run]:
        """Return a page of runs."""
        return await self.table.list(query)

    async def count_runs(self, query: RunQuery) -> int:
        """Return the number of runs that match; C{limit} and C{cursor} are ignored."""
        return await self.table.count(query)

    async def list_most_used(self, limit: int) -> tuple[str, ...]:
        """Return the actions that were completed most often of late."""
        return await self.table.most_used(limit)

    async def list_approvals(self, query: RunQuery) -> Page[Approval]:
        """Return a page of approvals, oldest first."""
        return await self.table.approvals(query)

    async def list_repeats(self, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """Return runs of other sessions that ask for the same; see L{IRuns.repeats}."""
        return await self.table.repeats(run, since, limit)

    async def list_twins(self, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """Return other runs of the session that ask for the same; see L{IRuns.twins}."""
        return await self.table.twins(run, since, limit)

    async def list_denials(self, since: datetime) -> tuple[Approval, ...]:
        """Return the newest thousand approvals denied after C{since}, oldest first."""
        return await self.table.denials(since)

    async def list_unshown(self) -> tuple[str, ...]:
        """Return the ids of pending runs whose preview is missing, oldest first."""
        return await self.table.unshown()

    async def list_unfinished(self) -> tuple[Run, ...]:
        """Return every run that has not ended, oldest first."""
        return await self.table.unfinished()

    async def list_steps(self, run_id: str) -> tuple[StepRow, ...]:
        """Return the steps of the run that ended, in order."""
        return await self.table.steps(run_id)

    async def list_attempts(self, run_id: str) -> tuple[AttemptRow, ...]:
        """Return the attempts of the run, in order."""
        return await self.table.attempts(run_id)

    async def require_room(self, charges: Sequence[Charge]) -> None:
        """Raise L{LimitExceeded} if a transition with these charges could not be applied now; nothing is counted."""
        await self.table.room(charges)

    async def record_progress(self, progress: Progress) -> None:
        """Store the steps, attempts and events of an executing run."""
        await self.table.progress(progress)

    async def audit_head(self) -> tuple[int, str] | None:
        """Return sequence and digest of the newest audit record, or None if there is none."""
        return await self.audit.head()

    async def record_digest(self, sequence: int) -> str | None:
        """Return the digest of the audit record with that sequence, or None if there is none."""
        return await self.audit.at(sequence)

    async def list_records(self, query: AuditQuery) -> Page[Record]:
        """Return a page of audit records."""
        return await self.audit.list(query)

    async def settled(self, run_id: str, seconds: float, *, moving: bool = False) -> Run:
        """Wait for the run to be settled, or return it as it is after C{seconds}.

        :param moving: its end is known to be still to come, so that nobody need look whether it was missed.
        """
        waiter = self._waiters.enlist(run_id)  # before the look, so that nothing falls between the two
        try:
            run = None if moving else await self.run(run_id)
            if run is not None and (run.state.settled or seconds <= 0):
                return run
            news = await self._waiters.first(run_id, waiter, seconds)
        finally:
            self._waiters.dismiss(run_id, waiter)
        return news if news is not None else await self.run(run_id)


def make_conflict(run: Run) -> Conflict:
    """Build the error for a caller whose run is decided, withdrawn or over already."""
    return Conflict(f"It is {run.state.value} already.", {"state": run.state.value})


def require_unchanged(read: Run) -> Verify:
    """Return a check that raises L{StateConflict} if the row is no longer as it was read."""

    def verify(row: Run, approval: Approval | None) -> None:
        if _standing(row) != _standing(read):
            raise StateConflict(row)

    return verify


def _standing(run: Run) -> tuple[object, ...]:
    """Return the fields that others may have written, as they are stored."""
    return run.state, run.changed_at, run.reason, compact(None if run.fault is None else to_json(run.fault))
