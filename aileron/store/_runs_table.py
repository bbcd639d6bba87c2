"""The tables of runs: C{runs}, C{run_steps}, C{run_attempts}, and C{charges}, which are counted for limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from attrs import frozen

from aileron.base.json import compact, from_timestamp, timestamp
from aileron.model.errors import LimitExceeded
from aileron.model.faults import Fault
from aileron.model.people import Owner
from aileron.model.queries import RunQuery
from aileron.model.runs import AttemptRow, Charge, Run, RunState, StepRow

from ._dialect import Cursor, SQLDialect
from ._table import FLAG, JSON_TEXT, MOMENT, PLAIN, Table, conditions, enum, fit, value

RUNS = Table(
    "runs",
    Run,
    {
        "id": PLAIN,
        "action": PLAIN,
        "action_version": PLAIN,
        "manifest_digest": PLAIN,
        "arguments": JSON_TEXT,
        "state": enum(RunState),
        "gated": FLAG,
        "effect_key": PLAIN,
        "received_at": MOMENT,
        "changed_at": MOMENT,
        "session_id": PLAIN,
        "idempotency_key": PLAIN,
        "result": JSON_TEXT.or_null(),
        "fault": value(Fault).or_null(),
        "reason": PLAIN,
        "audit_id": PLAIN,
        "asked": JSON_TEXT.or_null(),
        "parent_id": PLAIN,
        "start_after": MOMENT.or_null(),
        "undoes": PLAIN,
        "title": PLAIN,
        "owner": value(Owner).or_null(),
    },
)
SIZE = """length(runs.arguments) + coalesce(length(runs.result), 0) + coalesce(length(runs.asked), 0)
    + coalesce(length(runs.fault), 0) + coalesce(length(runs.reason), 0)"""
"""The size of a run in characters of JSON. The JSON is ASCII, so also in bytes."""

_CHANGED = RUNS.part("state", "changed_at", "result", "fault", "reason", "audit_id", "start_after", "title")
_EDITED = RUNS.part("arguments", "asked")
_UPDATE, _EDIT = _CHANGED.updating("id", "state"), _EDITED.updating("id")
_BY_KEY = """
    WHERE idempotency_key = ? AND action = ? AND coalesce(session_id, '') = ? AND received_at > ?
    ORDER BY ordinal DESC LIMIT 1
"""
UNFINISHED = """
    WHERE state IN ('received', 'pending_approval', 'approved', 'awaiting_vault', 'awaiting_credential', 'executing')
    ORDER BY ordinal
"""
_SAME = "action = ? AND id <> ? AND {} AND ? IN (arguments, asked)"
_OTHER_SESSION, _OWN_SESSION = "coalesce(session_id, '') <> ?", "session_id = ?"
_MOST_SEARCHED = 5000
_IDENTICAL = f"""
    WHERE ordinal IN (
        SELECT ordinal FROM runs WHERE {_SAME} AND state IN (
            'pending_approval', 'approved', 'awaiting_vault', 'awaiting_credential', 'executing', 'unknown')
        UNION ALL
        SELECT ordinal FROM runs WHERE {_SAME} AND state = 'completed' AND changed_at > ?
        AND ordinal > (SELECT max(ordinal) FROM runs) - {_MOST_SEARCHED}
    )
"""
_REPEATS = (
    f"{_IDENTICAL.format(_OTHER_SESSION, _OTHER_SESSION)} ORDER BY state = 'pending_approval', ordinal DESC LIMIT ?"
)
_TWINS = f"{_IDENTICAL.format(_OWN_SESSION, _OWN_SESSION)} ORDER BY ordinal LIMIT ?"
_MOST_USED = """
    SELECT action FROM (
        SELECT action FROM runs WHERE state = 'completed' ORDER BY ordinal DESC LIMIT 2000
    ) AS newest
    GROUP BY action ORDER BY count(*) DESC, action LIMIT ?
"""


def update(cursor: Cursor, run: Run, start: RunState) -> bool:
    """Update the row of C{run}, which was read in this transaction, if its state is C{start}.

    :return: whether the state was C{start}.
    """
    return cursor.update(_UPDATE, (*_CHANGED.row_of(run), run.id, start.value))


def edit(cursor: Cursor, run: Run) -> None:
    """Store the edited arguments of a run and the originally requested ones."""
    cursor.update(_EDIT, (*_EDITED.row_of(run), run.id))


def by_key(cursor: Cursor, session_id: str | None, action: str, key: str, since: datetime) -> Run | None:
    """Return the newest run after C{since} with this idempotency key, or None if there is none."""
    cursor.settle("runs", "idempotency_key", key)
    return RUNS.find(cursor, _BY_KEY, key, action, session_id or "", timestamp(since))


def repeats(cursor: Cursor, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
    """Return at most C{limit} runs of other sessions with the action and arguments of C{run}, newest first.

    They are not settled, of unknown outcome, or completed after C{since}. See L{IRuns.repeats}.
    """
    same = (run.action, run.id, run.session_id or "", compact(run.asked_for))
    return RUNS.select(cursor, _REPEATS, *same, *same, timestamp(since), limit)


def twins(cursor: Cursor, run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
    """Return at most C{limit} other runs of the session with the action and arguments of C{run}, oldest first.

    They are not settled, of unknown outcome, or completed after C{since}. See L{IRuns.twins}.
    """
    same = (run.action, run.id, run.session_id, compact(run.asked_for))
    return RUNS.select(cursor, _TWINS, *same, *same, timestamp(since), limit)


def pending(cursor: Cursor, *, session_id: str | None = None, action: str | None = None) -> int:
    """Return the number of pending runs of one session, of one action, or of all."""
    waits = ("state = ?", RunState.PENDING.value)
    return _count(cursor, *conditions(waits, ("session_id = ?", session_id), ("action = ?", action)))


def select(cursor: Cursor, query: RunQuery, key: int | None) -> tuple[list[tuple[int, Run]], int]:
    """Return the runs beyond the ordinal C{key}, with one more if there is a next page.

    :return: pairs of ordinal and run, and the number of runs on the page.
    """
    beyond, order = (">", "ASC") if query.oldest_first else ("<", "DESC")
    where, values = matching(cursor.dialect, query, (f"ordinal {beyond} ?", key))
    tail = f"FROM runs {where} ORDER BY ordinal {order} LIMIT ?"
    limit = fitting(cursor, SIZE, tail, values, query)
    rows = cursor.execute(f"SELECT ordinal, {RUNS.selection} {tail}", (*values, limit + 1))
    return [(row["ordinal"], RUNS.value_of(row)) for row in rows], limit


def fitting(cursor: Cursor, size: str, tail: str, values: Sequence[object], query: RunQuery) -> int:
    """Return the number of rows on the page that C{tail} selects. See L{fit}.

    :param size: an SQL expression of a row's size in bytes.
    """
    rows = cursor.execute(f"SELECT {size} AS size {tail}", (*values, query.limit)) if query.most_bytes else ()
    return fit((row["size"] for row in rows), query.limit, query.most_bytes)


def count(cursor: Cursor, query: RunQuery) -> int:
    """Return the number of runs that match the query."""
    return _count(cursor, *matching(cursor.dialect, query))


def count_by_state(cursor: Cursor) -> dict[RunState, int]:
    """Return the number of runs by state, without states that have none."""
    return {RunState(row[0]): row[1] for row in cursor.execute("SELECT state, count(*) FROM runs GROUP BY state")}


def _count(cursor: Cursor, where: str, values: list[object]) -> int:
    found: int = cursor.execute(f"SELECT count(*) FROM runs {where}", values).fetchone()[0]
    return found


def most_used(cursor: Cursor, limit: int) -> tuple[str, ...]:
    """Return the actions of the newest completed runs, most frequent first, then by name."""
    return tuple(row["action"] for row in cursor.execute(_MOST_USED, (limit,)))


def matching(dialect: SQLDialect, query: RunQuery, *terms: tuple[str, object]) -> tuple[str, list[object]]:
    """Return the C{WHERE} clause of a query, and its values."""
    return conditions(
        dialect.among("runs.state", query.states),
        ("runs.session_id = ?", query.session_id),
        ("runs.action = ?", query.action),
        ("runs.gated = ?", None if query.gated is None else int(query.gated)),
        ("runs.parent_id = ?", query.parent_id),
        ("runs.undoes = ?", query.undoes),
        *terms,
    )


STEPS = Table(
    "run_steps",
    StepRow,
    {"run_id": PLAIN, "step_id": PLAIN, "position": PLAIN, "state": PLAIN, "output": JSON_TEXT.or_null()},
)
ATTEMPTS = Table(
    "run_attempts",
    AttemptRow,
    {
        "run_id": PLAIN,
        "step_id": PLAIN,
        "number": PLAIN,
        "state": PLAIN,
        "started_at": MOMENT,
        "ended_at": MOMENT.or_null(),
        "fault": value(Fault).or_null(),
        "sent": FLAG.or_null(),
        "answer": PLAIN,
        "answer_type": PLAIN,
    },
)
STEPS_OF_RUN = "WHERE run_id = ? ORDER BY position, step_id"
ATTEMPTS_OF_RUN = "WHERE run_id = ? ORDER BY ordinal"
STEP_IN_PLACE = STEPS.overwriting("run_id", "step_id")
ATTEMPT_IN_PLACE = ATTEMPTS.overwriting("run_id", "step_id", "number", keep=("started_at",))


@frozen
class _Counted:
    key: str
    at: datetime


CHARGES = Table("charges", _Counted, {"key": PLAIN, "at": MOMENT})
_SPAN = "SELECT (SELECT max(ordinal) FROM charges) - (SELECT min(ordinal) FROM charges)"
_WITHIN = "SELECT count(*) FROM charges WHERE key = ? AND at > ?"
_LEAVES = "SELECT at FROM charges WHERE key = ? AND at > ? ORDER BY at LIMIT 1 OFFSET ?"
_FORGET = """
    DELETE FROM charges WHERE at < ? AND ordinal IN (SELECT ordinal FROM charges ORDER BY ordinal LIMIT ?)
"""
_KEPT = timedelta(days=2)
_FORGOTTEN = 2  # the number of old charges deleted per new one, so that their number falls


def charge(cursor: Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Count C{charges} at the time C{at}, and delete charges that are too old for every limit.

    Charges in the future, after the clock was set back, count too, so that changing the clock frees no limit.

    :raises LimitExceeded: if a limit is reached. C{details["retry_after"]} is in seconds.
    """
    if not charges:
        return
    check_room(cursor, charges, at)
    keys = sorted({each.key for each in charges})
    cursor.execute(_FORGET, (timestamp(at - _KEPT), _FORGOTTEN * len(keys)))
    CHARGES.insert(cursor, [_Counted(key, at) for key in keys])


def check_room(cursor: Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Raise if a limit of C{charges} is reached.

    Limits above the number of all rows are not counted, because counting is slow.

    :raises LimitExceeded: if a limit is reached. C{details["retry_after"]} is in seconds.
    """
    span: int | None = cursor.execute(_SPAN).fetchone()[0]
    for each in charges:
        if span is None or span + 1 < each.most:
            continue
        since = at - timedelta(seconds=each.seconds)
        within = (each.key, timestamp(since))
        counted: int = cursor.execute(_WITHIN, within).fetchone()[0]
        if counted >= each.most:
            leaves = cursor.execute(_LEAVES, (*within, counted - each.most)).fetchone()
            left = each.seconds if leaves is None else (from_timestamp(leaves["at"]) - since).total_seconds()
            raise LimitExceeded(each.message, {"retry_after": max(1, round(left))})
