"""The legal changes of runs, the events that record them, and the repository that stores both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
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
from aileron.model.runs import Approval, AttemptRow, Call, Charge, Progress, Run, RunState, StepRow, Transition
from aileron.model.tool_claims import ToolClaim

from .tasks import ResultWaiters

_R = RunState

Verify = Callable[[Run, Approval | None], None]
"""A check inside the transaction that changes a run. It raises an error if the run must not be changed."""


TRANSITIONS: tuple[tuple[RunState, str, RunState, str], ...] = (
    # the state before, the type of the last event recorded with the change, the state after, and the cause
    (_R.RECEIVED, "", _R.APPROVED, "agent"),
    (_R.RECEIVED, "run.approved", _R.APPROVED, "daemon"),
    (_R.RECEIVED, "approval.requested", _R.PENDING, "agent"),
    (_R.PENDING, "approval.previewed", _R.PENDING, "service"),
    (_R.PENDING, "approval.stale", _R.PENDING, "daemon"),
    (_R.PENDING, "approval.modified", _R.PENDING, "operator"),
    (_R.PENDING, "approval.voted", _R.PENDING, "operator"),
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
"""Every legal change of state. L{transition} refuses all others. C{doc/architecture.md} says when each happens."""

_LEGAL = frozenset((start, event, end) for start, event, end, _ in TRANSITIONS)


def transition(run: Run, end: RunState, at: datetime, *events: Event, **changes: Any) -> Transition:
    """Return the change of C{run} to the state C{end}, recorded by C{events}.

    If the run ends, the id of the last event becomes its C{audit_id}. The run's reason stays until another one is given
    or the approval is requested again.

    :param changes: further fields of L{Transition}.
    :raises ValueError: if L{TRANSITIONS} has no row with both states and the type of the last event.
    """
    event = events[-1].type if events else ""
    if (run.state, event, end) not in _LEGAL:
        raise ValueError(f"a run never goes from {run.state.value} to {end.value} by {event or 'no event'}")
    if end.settled and end is not run.state:
        changes["audit_id"] = events[-1].id
    changes.setdefault("audit_id", run.audit_id if end is run.state else None)
    changes.setdefault("reason", None if "ask" in changes else run.reason)
    return Transition(run_id=run.id, start=run.state, end=end, at=at, events=events, **changes)


def with_call(opening: Transition, call: Call) -> Transition:
    """Return C{opening} with what its call adds: a claim, and the id of the model's tool call in the first event."""
    session, new = call.session, call.claim
    if session is not None and new is not None:
        # guard of own tools: a run is not stored without its claim
        #    -> features.own_tools.test_door.RepetitionTests.test_killed
        claim = ToolClaim(opening.run_id, session.id, new.form, new.size, opening.at)
        opening = evolve(opening, claim=claim)
    if call.tool_call is None:
        return opening
    first, *others = opening.events
    named = evolve(first, payload={**first.payload, "tool_call": call.tool_call})
    return evolve(opening, events=(named, *others))


@frozen
class EventFactory:
    """Creates the audit events of the runner.

    :param ids: returns a new ULID.
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
        """Return an event about C{run}, with a new id and the current time.

        :param fault: a fault, which is added to the payload, or None.
        :param payload: the details. They must contain no secret.
        """
        if fault is not None:
            payload["failure"] = to_json(fault)
        if run.owner is not None:
            payload["owner"] = to_json(run.owner)
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
        """Return an event that concerns no run, with a new id and the current time.

        :param payload: the details. They must contain no secret.
        """
        return Event(id=self._ids(), type=type_, at=self.now(), actor=actor, payload=payload)


T = TypeVar("T")

_log = Logger()
_STORE_PAUSE_SECONDS = 1.0
_MOST_LOOKED_AT = 500


@define(eq=False)
class RunRepository:
    """Reads and changes stored runs, records events, and notifies callers that wait for a run to end.

    :ivar table: the database of runs.
    :ivar audit: the audit log, for events without a change of a run.
    :ivar events: creates the audit events.
    :param pending_limits: the maximum numbers of pending runs.
    :ivar shared: whether other daemons change runs as well.
    """

    table: IRuns
    audit: IAudit
    events: EventFactory
    _clock: IReactorTime
    _pending_limits: PendingLimits
    shared: bool = False
    _waiters: ResultWaiters[str, Run] = field(init=False)
    _on_unknown: list[Callable[[Run], None]] = field(factory=list, init=False)

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

    def follow(self, callback: Callable[[Run], None]) -> None:
        """Register C{callback}, which is called with each run that becomes C{unknown}, after the commit."""
        self._on_unknown.append(callback)

    async def receive(self, run: Run, transitions: Sequence[Transition]) -> tuple[Run, bool]:
        """Store a new run with its first transitions. See L{IRuns.receive}.

        :return: the stored run and True, or the earlier run with the same idempotency key and False.
        :raises LimitExceeded: if too many runs are pending, or a cap is reached.
        :raises Conflict: if the idempotency key was used with other arguments.
        :raises StoreUnavailable: if nothing was stored.
        """
        return await self.table.receive(run, transitions, self._pending_limits)

    async def apply(self, *transitions: Transition) -> Run:
        """Apply C{transitions} to their run in one transaction, then notify the callers that wait for the run to end.

        :raises StateConflict: if the stored run is in another state than the transitions start from.
        :raises LimitExceeded: if the limit of a charge is reached.
        :raises NotFound: if there is no such run.
        :raises StoreUnavailable: if nothing was stored.
        """
        run = await self.table.apply(*transitions)
        if run.state.settled:
            # guard of promise 4: waiting callers get the result -> KeptTests.test_waiter
            self._waiters.fire_all(run.id, run)
        if run.state is RunState.UNKNOWN is not transitions[0].start:
            for callback in self._on_unknown:
                callback(run)
        return run

    def end_waits(self, kept: Callable[[str], bool]) -> None:
        """End the waits of all callers now, except for the runs of C{kept}."""
        self._waiters.end_waits(kept)

    async def catch_up(self, run_ids: Collection[str] | None) -> None:
        """Notify the callers that wait for runs which another daemon has ended.

        :param run_ids: the runs that may have ended, or None for any.
        :raises StoreUnavailable: if the runs cannot be read.
        """
        for run_id in self._waiters.list_keys():
            if run_ids is None or run_id in run_ids:
                run = await self.table.get(run_id)
                if run is not None and run.state.settled:
                    self._waiters.fire_all(run_id, run)

    async def apply_or_refuse(self, *transitions: Transition) -> Run:
        """Apply C{transitions} to their run in one transaction, but report a conflict as an error for the caller.

        :raises Conflict: if the stored run is in another state. The error names that state.
        :raises LimitExceeded: if the limit of a charge is reached.
        :raises NotFound: if there is no such run.
        :raises StoreUnavailable: if nothing was stored.
        """
        try:
            return await self.apply(*transitions)
        except StateConflict as conflict:
            raise make_conflict(conflict.present) from conflict

    async def note_superseded(self, decided: Transition, run: Run) -> Transition:
        """Return C{decided}, with a note on the uncertain run that C{run} repeats, if C{decided} approves C{run}.

        If C{run} repeats no other run or is not approved, return C{decided} as it is. The note says that the earlier
        run need not be settled any more.
        """
        earlier = None if run.parent_id is None else await self.table.get(run.parent_id)
        if earlier is None or decided.end is not RunState.APPROVED:
            return decided
        event = self.events.of_run("run.superseded", earlier, decided.events[-1].actor, by=run.id)
        return evolve(decided, note=earlier.note_repetition(event, superseded_by=run.id))

    async def insist(self, run_id: str, write: Callable[[], Awaitable[T]]) -> T:
        """Call C{write} and return its result. Retry for as long as the database refuses.

        :param run_id: the run to name in the log.
        """
        while True:
            try:
                return await write()
            # guard of promise 4: an outcome is stored after any refusals -> KeptTests.test_end_is_written
            except StoreUnavailable:
                _log.warn("the outcome of run {run} cannot be written yet", run=run_id)
                await deferLater(self._clock, _STORE_PAUSE_SECONDS)

    async def amend(self, run: Run, changed: Callable[[Run], Transition], events: Sequence[Event]) -> Run:
        """Apply a transition to an C{unknown} run, or only record C{events} if the run is no longer C{unknown}.

        Retry for as long as the database refuses, and with the present row if the run was changed meanwhile.

        :param changed: returns the transition for the present run. It must fail if the row has changed. See
            L{require_unchanged}.
        :return: the run afterwards.
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

        :raises NotFound: if there is no such run.
        """
        run = await self.table.get(run_id)
        if run is None:
            raise NotFound("There is no such run.")
        return run

    async def all(self, query: RunQuery) -> AsyncIterator[Run]:
        """Yield every run that matches C{query}, on all pages."""
        while True:
            page = await self.table.list(query)
            for run in page.items:
                yield run
            if page.cursor is None:
                return
            query = evolve(query, cursor=page.cursor)

    async def approval(self, run_id: str) -> Approval:
        """Return the approval of a gated run.

        :raises NotFound: if there is no such approval.
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
        """Return a page of runs.

        :raises InvalidRequest: if the cursor is not of this list.
        :raises StoreUnavailable: if the database cannot be read.
        """
        return await self.table.list(query)

    async def count_runs(self, query: RunQuery) -> int:
        """Return the number of runs that match C{query}. Its C{limit} and C{cursor} are ignored."""
        return await self.table.count(query)

    async def list_most_used(self, limit: int) -> tuple[str, ...]:
        """Return the names of the actions with the most completed runs of late, at most C{limit}."""
        return await self.table.most_used(limit)

    async def list_approvals(self, query: RunQuery) -> Page[Approval]:
        """Return a page of approvals, oldest first."""
        return await self.table.approvals(query)

    async def list_repeats(self, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """Return at most C{limit} runs of other sessions with the action and arguments of C{run}, newest first.

        They are not settled, of unknown outcome, or completed after C{since}. See L{IRuns.repeats}.
        """
        return await self.table.repeats(run, since, limit)

    async def list_twins(self, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """Return at most C{limit} other runs of the session with the action and arguments of C{run}, oldest first.

        They are not settled, of unknown outcome, or completed after C{since}. See L{IRuns.twins}.
        """
        return await self.table.twins(run, since, limit)

    async def list_denials(self, since: datetime) -> tuple[Approval, ...]:
        """Return the newest thousand approvals denied after C{since}, oldest first."""
        return await self.table.denials(since)

    async def list_unshown(self) -> AsyncIterator[tuple[str, ...]]:
        """Yield the ids of pending runs whose preview is missing, oldest first, in pages that are read quickly."""
        after: int | None = 0
        while after is not None:
            run_ids, after = await self.table.unshown(after, _MOST_LOOKED_AT)
            yield run_ids

    async def list_unfinished(self) -> tuple[Run, ...]:
        """Return every run that has neither ended nor become C{unknown}, oldest first."""
        return await self.table.unfinished()

    async def list_steps(self, run_id: str) -> tuple[StepRow, ...]:
        """Return the completed steps of the run, in order."""
        return await self.table.steps(run_id)

    async def list_attempts(self, run_id: str) -> tuple[AttemptRow, ...]:
        """Return the attempts of the run, in order."""
        return await self.table.attempts(run_id)

    async def require_room(self, charges: Sequence[Charge]) -> None:
        """Raise L{LimitExceeded} if a limit of C{charges} is reached now. Nothing is counted."""
        await self.table.room(charges)

    async def record_progress(self, progress: Progress) -> None:
        """Store the steps, attempts and events of an executing run."""
        await self.table.progress(progress)

    async def audit_head(self) -> tuple[int, str] | None:
        """Return the sequence and the hash of the newest audit record, or None if the log is empty."""
        return await self.audit.head()

    async def record_digest(self, sequence: int) -> str | None:
        """Return the hash of the audit record with that sequence, or None if there is no such record."""
        return await self.audit.at(sequence)

    async def list_records(self, query: AuditQuery) -> Page[Record]:
        """Return a page of audit records.

        :raises InvalidRequest: if the cursor is not of this list.
        """
        return await self.audit.list(query)

    async def settled(self, run_id: str, seconds: float, *, moving: bool = False) -> Run:
        """Wait until the run is settled, at most C{seconds}, and return the run as it is then.

        :param moving: True if the run's task is running, so that the run cannot have ended before this call. This saves
            one read.
        :raises NotFound: if there is no such run.
        """
        waiter = self._waiters.enlist(run_id)  # before the read, so that no end is missed between the two
        try:
            run = None if moving else await self.run(run_id)
            if run is not None and (run.state.settled or seconds <= 0):
                return run
            news = await self._waiters.first(run_id, waiter, seconds)
        finally:
            self._waiters.dismiss(run_id, waiter)
        return news if news is not None else await self.run(run_id)


def make_conflict(run: Run) -> Conflict:
    """Return the error for a request that the run's present state does not allow. The error names the state."""
    return Conflict(f"It is {run.state.value} already.", {"state": run.state.value})


def require_unchanged(read: Run) -> Verify:
    """Return a check for a transaction: it raises L{StateConflict} if the row has changed since C{read} was read."""

    def verify(row: Run, approval: Approval | None) -> None:
        if _standing(row) != _standing(read):
            raise StateConflict(row)

    return verify


def _standing(run: Run) -> tuple[object, ...]:
    """Return the fields of a run that differ after every change of its row, for comparing two versions of the row."""
    return run.state, run.changed_at, run.reason, compact(None if run.fault is None else to_json(run.fault))
