"""Runs over SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.errors import Conflict, LimitExceeded, NotFound, StateConflict
from aileron.interfaces import IRuns
from aileron.values import (
    Approval,
    AttemptRow,
    Charge,
    Page,
    PendingLimits,
    Progress,
    Run,
    RunQuery,
    RunState,
    StepRow,
    Transition,
    compact,
    utc,
)

from . import _approvals_table as approvals_table
from . import _binding_flags_table as flags_table
from . import _charges_table as charges_table
from . import _run_attempts_table as attempts_table
from . import _run_steps_table as steps_table
from . import _runs_table as runs_table
from ._batch import Batch, Later
from ._chain import Seals, keep
from ._cursors import after, page
from ._readers import Readers
from ._standing import Standing, advanced
from ._tallies import Tallies
from ._writer import Writer

_KEY_LIVES = timedelta(days=7)
_RETRY_AFTER_SECONDS = 30
_MOST_DENIALS = 1000


@frozen
class _Books:
    """What a transition is entered in beside the tables of runs."""

    seals: Seals
    tallies: Tallies = field(factory=Tallies)


@implementer(IRuns)
@frozen
class SQLiteRuns:
    """See L{IRuns}."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _books: _Books = field(converter=_Books)

    async def receive(self, run: Run, transitions: Sequence[Transition], limits: PendingLimits) -> tuple[Run, bool]:
        """See L{IRuns.receive}."""
        return await self._writer.write(_receive, self._books, run, tuple(transitions), limits)

    async def find_by_key(self, session_id: str | None, action: str, idempotency_key: str) -> Run | None:
        """See L{IRuns.find_by_key}."""
        since = utc(self._clock.seconds()) - _KEY_LIVES
        return await self._readers.read(runs_table.by_key, session_id, action, idempotency_key, since)

    async def apply(self, *transitions: Transition) -> Run:
        """See L{IRuns.apply}."""
        if not transitions:
            raise ValueError("no transition")
        return await self._writer.write(_apply, self._books, transitions)

    async def progress(self, progress: Progress) -> None:
        """See L{IRuns.progress}."""
        await self._writer.write(_progress, self._books, progress)

    async def get(self, run_id: str) -> Run | None:
        """See L{IRuns.get}."""
        return await self._readers.read(runs_table.get, run_id)

    async def approval(self, run_id: str) -> Approval | None:
        """See L{IRuns.approval}."""
        return await self._readers.read(_approval, run_id)

    async def list(self, query: RunQuery) -> Page[Run]:
        """See L{IRuns.list}."""
        kind = "runs-up" if query.oldest_first else "runs"
        rows = await self._readers.read(runs_table.select, query, after(kind, query.cursor))
        return page(kind, rows, query.limit)

    async def approvals(self, query: RunQuery) -> Page[Approval]:
        """See L{IRuns.approvals}."""
        key = after("approvals", query.cursor)
        rows = await self._readers.read(approvals_table.select, evolve(query, gated=None), key)
        return page("approvals", rows, query.limit)

    async def denials(self, since: datetime) -> tuple[Approval, ...]:
        """See L{IRuns.denials}."""
        return await self._readers.read(approvals_table.denials, since, _MOST_DENIALS)

    async def unshown(self) -> tuple[str, ...]:
        """See L{IRuns.unshown}."""
        return await self._readers.read(approvals_table.unshown)

    async def unfinished(self) -> tuple[Run, ...]:
        """See L{IRuns.unfinished}."""
        return await self._readers.read(runs_table.unfinished)

    async def steps(self, run_id: str) -> tuple[StepRow, ...]:
        """See L{IRuns.steps}."""
        return await self._readers.read(steps_table.of_run, run_id)

    async def attempts(self, run_id: str) -> tuple[AttemptRow, ...]:
        """See L{IRuns.attempts}."""
        return await self._readers.read(attempts_table.of_run, run_id)

    async def room(self, charges: Sequence[Charge]) -> None:
        """See L{IRuns.room}."""
        await self._readers.read(charges_table.room, tuple(charges), utc(self._clock.seconds()))

    async def most_used(self, limit: int) -> tuple[str, ...]:
        """See L{IRuns.most_used}."""
        return await self._readers.read(runs_table.most_used, limit)

    async def count(self, query: RunQuery) -> int:
        """See L{IRuns.count}."""
        return await self._readers.read(runs_table.count, query)


def _receive(
    batch: Batch, books: _Books, run: Run, transitions: Sequence[Transition], limits: PendingLimits
) -> tuple[Run, bool]:
    earlier = _earlier(batch, run)
    if earlier is not None:
        return earlier, False
    standing = advanced(Standing(run), transitions)
    if standing.run.state is RunState.PENDING:
        _refuse_beyond(batch, run, limits)
    batch.owe(runs_table.insert, (standing.run,))
    _keep_rest(batch, books, standing.approval, transitions)
    return standing.run, True


def _earlier(batch: Batch, run: Run) -> Run | None:
    if run.idempotency_key is None:
        return None
    _write_out(batch)
    since: datetime = run.received_at - _KEY_LIVES
    earlier = runs_table.by_key(batch, run.session_id, run.action, run.idempotency_key, since)
    if earlier is None or _same_call(earlier, run):
        return earlier
    raise Conflict(
        "This idempotency key was used with other arguments, or before the action changed.",
        {"run_id": earlier.id, "status": earlier.state.value},
    )


def _same_call(earlier: Run, run: Run) -> bool:
    same_arguments = compact(earlier.asked_for) == compact(run.arguments)  # as text: 1 is not true
    return same_arguments and earlier.manifest_digest == run.manifest_digest


def _refuse_beyond(batch: Batch, run: Run, limits: PendingLimits) -> None:
    """:raises LimitExceeded: as many approvals wait as may."""
    _write_out(batch)
    details = {"retry_after": _RETRY_AFTER_SECONDS}
    if run.session_id is not None and runs_table.pending(batch, session_id=run.session_id) >= limits.per_session:
        raise LimitExceeded("Too many approvals of this session wait for a decision.", details)
    if runs_table.pending(batch, action=run.action) >= limits.per_action:
        raise LimitExceeded("Too many approvals of this action wait for a decision.", details)
    if runs_table.pending(batch) >= limits.per_home:
        raise LimitExceeded("Too many approvals wait for a decision.", details)


def _apply(batch: Batch, books: _Books, transitions: Sequence[Transition]) -> Run | Later[Run]:
    if _are_plain(transitions):
        batch.owe(runs_table.insert, ())  # it may be one of those
        moved = batch.expect(runs_table.move, transitions[0])
        _keep_rest(batch, books, None, transitions)
        return moved
    standing = _changed(batch, transitions)
    _keep_rest(batch, books, standing.approval, transitions)
    return standing.run


def _are_plain(transitions: Sequence[Transition]) -> bool:
    """Whether it is one that needs no look at the row beforehand, as nearly all are that end a run."""
    change, *others = transitions
    return not (others or change.verify or change.ask or change.decision or change.edited is not None)


def _changed(batch: Batch, transitions: Sequence[Transition]) -> Standing:
    before = _standing(batch, transitions)
    standing = advanced(before, transitions)
    if not runs_table.update(batch, standing.run, before.run.state):
        raise StateConflict(before.run)
    if any(each.edited is not None for each in transitions):
        runs_table.edit(batch, standing.run)
    return standing


def _keep_rest(batch: Batch, books: _Books, approval: Approval | None, transitions: Sequence[Transition]) -> None:
    """What belongs to a changed run: its approval, if it changed, its steps and attempts, and the events."""
    if approval is not None and any(each.ask or each.decision for each in transitions):
        batch.pay(runs_table.insert)
        approvals_table.put(batch, approval)
    batch.owe(runs_table.insert, ())  # before what refers to them
    for transition in transitions:
        charges_table.charge(batch, books.tallies, transition.charges, transition.at)
        batch.owe(steps_table.put, transition.steps)
        batch.owe(attempts_table.put, transition.attempts)
        flags_table.put(batch, transition.flags)
    keep(batch, books.seals, [event for transition in transitions for event in transition.events])


def _progress(batch: Batch, books: _Books, progress: Progress) -> None:
    run = _known(batch, progress.run_id)
    if run.state is not RunState.EXECUTING:
        raise StateConflict(run)
    batch.owe(steps_table.put, progress.steps)
    batch.owe(attempts_table.put, progress.attempts)
    flags_table.put(batch, progress.flags)
    keep(batch, books.seals, progress.events)


def _standing(batch: Batch, transitions: Sequence[Transition]) -> Standing:
    """The run, and its approval if it is asked for, whatever the run's own row says of being gated."""
    run = _known(batch, transitions[0].run_id)
    about_it = any(each.verify or each.ask or each.decision for each in transitions)
    return Standing(run, approvals_table.of_run(batch, run) if about_it else None)


def _known(batch: Batch, run_id: str) -> Run:
    _write_out(batch)
    run = runs_table.get(batch, run_id)
    if run is None:
        raise NotFound("There is no such run.")
    return run


def _write_out(batch: Batch) -> None:
    """Have the table say what this transaction has done to it so far."""
    batch.pay(runs_table.insert)
    batch.pay(runs_table.move)


def _approval(cursor: sqlite3.Cursor, run_id: str) -> Approval | None:
    run = runs_table.get(cursor, run_id)
    return None if run is None else approvals_table.of_run(cursor, run)
