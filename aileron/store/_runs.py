"""Stores runs in the database: one for each idempotency key. A run is changed only if it is in the expected state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import compact, utc
from aileron.model.authority import PendingLimits
from aileron.model.errors import Conflict, LimitExceeded, NotFound, StateConflict
from aileron.model.interfaces.store import IRuns
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Approval, AttemptRow, Charge, Decision, Progress, Run, RunState, StepRow, Transition

from . import _approvals_table as approvals_table
from . import _runs_table as runs_table
from ._audit import Seals
from ._connections import Readers
from ._daemons import Daemons
from ._dialect import Cursor
from ._engine import looks_up
from ._memories import put_flags
from ._people import check_decider
from ._runs_table import RUNS
from ._table import make_page, read_cursor
from ._tool_claims import insert_claim
from ._votes import put_vote
from ._writer import Writer

_KEY_LIVES = timedelta(days=7)
_RETRY_AFTER_SECONDS = 30
_MOST_DENIALS = 1000


@implementer(IRuns)
@frozen
class SQLRuns:
    """Stores runs, and everything that changes with them in one transaction."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _seals: Seals
    _daemons: Daemons | None = None

    async def receive(self, run: Run, transitions: Sequence[Transition], limits: PendingLimits) -> tuple[Run, bool]:
        write = self._writer.write(_receive, self._seals, run, tuple(transitions), limits, self._daemons)
        return await (write if self._daemons is None else self._daemons.informed(write))

    async def find_by_key(self, session_id: str | None, action: str, idempotency_key: str) -> Run | None:
        since = utc(self._clock.seconds()) - _KEY_LIVES
        return await self._readers.read(runs_table.by_key, session_id, action, idempotency_key, since)

    async def apply(self, *transitions: Transition) -> Run:
        if not transitions:
            raise ValueError("no transition")
        write = self._writer.write(_apply, self._seals, transitions, self._daemons)
        return await (write if self._daemons is None else self._daemons.informed(write))

    async def progress(self, progress: Progress) -> None:
        await self._writer.write(_progress, self._seals, progress)

    async def get(self, run_id: str) -> Run | None:
        return await self._readers.read(RUNS.find_by, "id", run_id)

    async def approval(self, run_id: str) -> Approval | None:
        return await self._readers.read(_approval, run_id)

    async def list(self, query: RunQuery) -> Page[Run]:
        kind = "runs-up" if query.oldest_first else "runs"
        rows, limit = await self._readers.read(runs_table.select, query, read_cursor(kind, query.cursor))
        return make_page(kind, rows, limit)

    async def approvals(self, query: RunQuery) -> Page[Approval]:
        key = read_cursor("approvals", query.cursor)
        rows, limit = await self._readers.read(approvals_table.select, evolve(query, gated=None), key)
        return make_page("approvals", rows, limit)

    async def repeats(self, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        return await self._readers.read(runs_table.repeats, run, since, limit)

    async def twins(self, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        return await self._readers.read(runs_table.twins, run, since, limit)

    async def denials(self, since: datetime) -> tuple[Approval, ...]:
        return await self._readers.read(approvals_table.denials, since, _MOST_DENIALS)

    async def unshown(self, after: int, most: int) -> tuple[tuple[str, ...], int | None]:
        return await self._readers.read(approvals_table.unshown, after, most)

    async def unfinished(self) -> tuple[Run, ...]:
        return await self._readers.read(RUNS.select, runs_table.UNFINISHED)

    async def steps(self, run_id: str) -> tuple[StepRow, ...]:
        return await self._readers.read(runs_table.STEPS.select, runs_table.STEPS_OF_RUN, run_id)

    async def attempts(self, run_id: str) -> tuple[AttemptRow, ...]:
        return await self._readers.read(runs_table.ATTEMPTS.select, runs_table.ATTEMPTS_OF_RUN, run_id)

    async def room(self, charges: Sequence[Charge]) -> None:
        await self._readers.read(runs_table.check_room, tuple(charges), utc(self._clock.seconds()))

    async def most_used(self, limit: int) -> tuple[str, ...]:
        return await self._readers.read(runs_table.most_used, limit)

    async def count(self, query: RunQuery) -> int:
        return await self._readers.read(runs_table.count, query)


def _receive(
    cursor: Cursor,
    seals: Seals,
    run: Run,
    transitions: Sequence[Transition],
    limits: PendingLimits,
    daemons: Daemons | None,
) -> tuple[Run, bool]:
    earlier = _earlier(cursor, run)
    # guard of promise 4: an idempotency key makes one run
    # guard of promise 4: a key makes one run, in the transaction -> KeptTests.test_key_twice_at_once
    if earlier is not None:
        return earlier, False
    _admit(cursor, transitions, daemons)
    standing = _advance_all(_Standing(run), transitions)
    if standing.run.state is RunState.PENDING:
        _refuse_beyond(cursor, run, limits)
    RUNS.insert(cursor, [standing.run])
    if daemons is not None:
        daemons.hold(cursor, standing.run)
    _store_rest(cursor, seals, standing.approval, transitions)
    return standing.run, True


def _earlier(cursor: Cursor, run: Run) -> Run | None:
    if run.idempotency_key is None:
        return None
    since: datetime = run.received_at - _KEY_LIVES
    earlier = runs_table.by_key(cursor, run.session_id, run.action, run.idempotency_key, since)
    if earlier is None or _same_call(earlier, run):
        return earlier
    raise Conflict(
        "This idempotency key was used with other arguments, or before the action changed.",
        {"run_id": earlier.id, "status": earlier.state.value},
    )


def _same_call(earlier: Run, run: Run) -> bool:
    same_arguments = compact(earlier.asked_for) == compact(run.arguments)  # compared as text: 1 is not true
    # guard of several daemons: a run that undoes nothing is not taken for an undo, in the transaction
    #    -> runner.test_several.UndoTests.test_taken_key
    same_wish = earlier.manifest_digest == run.manifest_digest and earlier.undoes == run.undoes
    return same_arguments and same_wish


def _refuse_beyond(cursor: Cursor, run: Run, limits: PendingLimits) -> None:
    """Refuse a new pending run if too many approvals are pending.

    :raises LimitExceeded: if the limit of the session, the action or the home is reached.
    """
    details = {"retry_after": _RETRY_AFTER_SECONDS}
    if run.session_id is not None and runs_table.pending(cursor, session_id=run.session_id) >= limits.per_session:
        raise LimitExceeded("Too many approvals of this session wait for a decision.", details)
    if runs_table.pending(cursor, action=run.action) >= limits.per_action:
        raise LimitExceeded("Too many approvals of this action wait for a decision.", details)
    if runs_table.pending(cursor) >= limits.per_home:
        raise LimitExceeded("Too many approvals wait for a decision.", details)


def _admit(cursor: Cursor, transitions: Sequence[Transition], daemons: Daemons | None) -> None:
    """Check that this daemon may begin an effect, if a transition begins one and several daemons share the database.

    :raises StoreUnavailable: if it may not.
    """
    if daemons is not None and any(each.end is RunState.EXECUTING for each in transitions):
        daemons.admit(cursor)


@looks_up(RUNS.looking("id"), lambda seals, transitions, daemons: transitions[0].run_id)
def _apply(cursor: Cursor, seals: Seals, transitions: Sequence[Transition], daemons: Daemons | None) -> Run:
    _admit(cursor, transitions, daemons)
    standing = _change(cursor, transitions)
    if daemons is not None:
        daemons.hold(cursor, standing.run)
    _store_rest(cursor, seals, standing.approval, transitions)
    return standing.run


def _change(cursor: Cursor, transitions: Sequence[Transition]) -> _Standing:
    before = _find_standing(cursor, transitions)
    standing = _advance_all(before, transitions)
    for transition in transitions:
        check_decider(cursor, transition, before.run.owner)
    if not runs_table.update(cursor, standing.run, before.run.state):
        raise StateConflict(before.run)
    if any(each.edited is not None for each in transitions):
        runs_table.edit(cursor, standing.run)
    return standing


def _store_rest(cursor: Cursor, seals: Seals, approval: Approval | None, transitions: Sequence[Transition]) -> None:
    """Store the other changes of a run: its approval, steps, attempts, charges, claim and events.

    :raises LimitExceeded: if a limit of a charge is reached.
    """
    if approval is not None and any(each.ask or each.decision for each in transitions):
        approvals_table.put(cursor, approval)
    for vote in filter(None, (transition.vote for transition in transitions)):
        put_vote(cursor, vote)
    for transition in transitions:
        runs_table.charge(cursor, transition.charges, transition.at)
        _keep_details(cursor, transition)
        if transition.claim is not None:
            insert_claim(cursor, transition.claim)
    # guard of promise 6: an event is stored with its change -> RecordedTests, instead events = []
    events = [event for transition in transitions for event in transition.events]
    for note in filter(None, (transition.note for transition in transitions)):
        earlier = _find_known(cursor, note.run_id)
        # guard of several daemons: of two daemons one repeats a run -> runner.test_several.AgainTests.test_both
        if note.verify is not None:
            note.verify(earlier)
        if earlier.state is RunState.UNKNOWN:
            runs_table.update(cursor, note.applied(earlier), RunState.UNKNOWN)
        events.append(note.event)
    seals.append(cursor, events)


def _keep_details(cursor: Cursor, done: Transition | Progress) -> None:
    runs_table.STEPS.insert(cursor, done.steps, runs_table.STEP_IN_PLACE)
    runs_table.ATTEMPTS.insert(cursor, done.attempts, runs_table.ATTEMPT_IN_PLACE)
    put_flags(cursor, done.flags)


@looks_up(RUNS.looking("id"), lambda seals, progress: progress.run_id)
def _progress(cursor: Cursor, seals: Seals, progress: Progress) -> None:
    run = _find_known(cursor, progress.run_id)
    if run.state is not RunState.EXECUTING:
        raise StateConflict(run)
    _keep_details(cursor, progress)
    seals.append(cursor, progress.events)


def _find_standing(cursor: Cursor, transitions: Sequence[Transition]) -> _Standing:
    """Return the run, with its approval if a transition needs it, even if the run's row says it is not gated.

    :raises NotFound: if there is no such run.
    """
    run = _find_known(cursor, transitions[0].run_id)
    about_it = any(each.verify or each.ask or each.decision or each.vote for each in transitions)
    return _Standing(run, approvals_table.of_run(cursor, run) if about_it else None)


def _find_known(cursor: Cursor, run_id: str) -> Run:
    run = RUNS.find_by(cursor, "id", run_id)
    if run is None:
        raise NotFound("There is no such run.")
    return run


def _approval(cursor: Cursor, run_id: str) -> Approval | None:
    run = RUNS.find_by(cursor, "id", run_id)
    return None if run is None else approvals_table.of_run(cursor, run)


@frozen
class _Standing:
    """A run and its approval, if any, as they are in the transaction."""

    run: Run
    approval: Approval | None = None


def _advance_all(standing: _Standing, transitions: Iterable[Transition]) -> _Standing:
    """Return C{standing} after C{transitions}, in order.

    :raises StateConflict: if the run is not in the state that a transition starts from.
    :raises ValueError: if a transition is of another run, or decides without a requested approval.
    """
    for transition in transitions:
        standing = _advance(standing, transition)
    return standing


def _advance(standing: _Standing, transition: Transition) -> _Standing:
    run = standing.run
    if transition.run_id != run.id:
        raise ValueError("a transition of another run")
    # guard of promise 5: a change is made only from the expected state -> OnceTests.test_taken_back_while_it_begins
    if run.state is not transition.start:
        raise StateConflict(run)
    # guard of promise 2: the signature is verified in the transaction -> WrittenRowsTests.test_written_while_it_begins
    if transition.verify is not None:
        transition.verify(run, standing.approval)
    run = transition.applied(run)
    return _Standing(run, _approval_after(run, standing.approval, transition))


def _approval_after(run: Run, approval: Approval | None, transition: Transition) -> Approval | None:
    if transition.ask is not None:
        ask = transition.ask
        approval = Approval(
            run, ask.digest, ask.review, ask.requested_at, ask.expires_at, ask.stale, changes=ask.changes
        )
    if transition.decision is not None:
        if approval is None:
            raise ValueError("a decision on a run that nobody was asked about")
        approval = _decide(approval, transition.decision, transition)
    return approval if approval is None else evolve(approval, run=run)


def _decide(approval: Approval, decision: Decision, transition: Transition) -> Approval:
    return evolve(
        approval,
        approved=decision.approved,
        decided_at=decision.decided_at or transition.at,
        decided_by=decision.decided_by,
        reason=decision.reason,
        not_before=decision.not_before,
        not_after=decision.not_after,
        mark=decision.mark,
        grant_id=decision.grant_id,
        signed=decision.signed,
        approvers_digest=decision.approvers_digest,
        counted=decision.counted,
        forced=decision.forced,
    )
