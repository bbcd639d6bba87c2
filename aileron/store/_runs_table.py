"""C{runs}: every invocation, from its first moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from aileron.values import Fault, Run, RunQuery, RunState, timestamp

from ._queries import among, conditions, fit
from ._table import FLAG, JSON_TEXT, MOMENT, PLAIN, Table, enum, value

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
    },
)
SIZE = "length(runs.arguments) + ifnull(length(runs.result), 0) + ifnull(length(runs.asked), 0)"
"""In characters of JSON, which is ASCII here, so bytes."""

_CHANGED = RUNS.part("state", "changed_at", "result", "fault", "reason", "audit_id", "start_after")
_EDITED = RUNS.part("arguments", "asked")
_UPDATE = f"UPDATE runs SET {_CHANGED.assignments()} WHERE id = ? AND state = ?"
_BY_KEY = """
    WHERE idempotency_key = ? AND action = ? AND session_id IS ? AND received_at > ?
    ORDER BY ordinal DESC LIMIT 1
"""
UNFINISHED = """
    WHERE state IN ('received', 'pending_approval', 'approved', 'awaiting_vault', 'awaiting_credential', 'executing')
    ORDER BY ordinal
"""
_MOST_USED = """
    SELECT action FROM (
        SELECT action FROM runs WHERE state = 'completed' ORDER BY ordinal DESC LIMIT 2000
    )
    GROUP BY action ORDER BY count(*) DESC, action LIMIT ?
"""


def update(cursor: sqlite3.Cursor, run: Run, start: RunState) -> bool:
    """Bring the row of C{run} to what C{run} says, if it stands in C{start}.

    :return: whether it stood there.
    """
    cursor.execute(_UPDATE, (*_CHANGED.row_of(run), run.id, start.value))
    return cursor.rowcount == 1


def edit(cursor: sqlite3.Cursor, run: Run) -> None:
    """Keep other arguments than those that were asked for, and these beside them."""
    cursor.execute(f"UPDATE runs SET {_EDITED.assignments()} WHERE id = ?", (*_EDITED.row_of(run), run.id))


def by_key(cursor: sqlite3.Cursor, session_id: str | None, action: str, key: str, since: datetime) -> Run | None:
    """Return the newest run after C{since} that used the idempotency key, or L{None}."""
    return RUNS.find(cursor, _BY_KEY, key, action, session_id, timestamp(since))


def pending(cursor: sqlite3.Cursor, *, session_id: str | None = None, action: str | None = None) -> int:
    """Count the runs that wait for a decision, of one session, of one action, or of all."""
    waits = ("state = ?", RunState.PENDING.value)
    return _count(cursor, *conditions(waits, ("session_id = ?", session_id), ("action = ?", action)))


def select(cursor: sqlite3.Cursor, query: RunQuery, key: int | None) -> tuple[list[tuple[int, Run]], int]:
    """Read the runs beyond the ordinal C{key}, each with its own, and one more where there is a next page.

    :return: the runs, and how many of them make the page.
    """
    beyond, order = (">", "ASC") if query.oldest_first else ("<", "DESC")
    where, values = matching(query, (f"ordinal {beyond} ?", key))
    tail = f"FROM runs {where} ORDER BY ordinal {order} LIMIT ?"
    limit = fitting(cursor, SIZE, tail, values, query)
    rows = cursor.execute(f"SELECT ordinal, {RUNS.selection} {tail}", (*values, limit + 1))
    return [(row["ordinal"], RUNS.value_of(row)) for row in rows], limit


def fitting(cursor: sqlite3.Cursor, size: str, tail: str, values: Sequence[object], query: RunQuery) -> int:
    """Count the rows of the page that C{tail} selects; see L{fit}.

    :param size: an SQL expression of a row's size in bytes.
    """
    rows = cursor.execute(f"SELECT {size} AS size {tail}", (*values, query.limit)) if query.most_bytes else ()
    return fit((row["size"] for row in rows), query.limit, query.most_bytes)


def count(cursor: sqlite3.Cursor, query: RunQuery) -> int:
    """Count the runs that match."""
    return _count(cursor, *matching(query))


def count_by_state(cursor: sqlite3.Cursor) -> dict[RunState, int]:
    """Count the runs in each state that there are runs in."""
    return {RunState(row[0]): row[1] for row in cursor.execute("SELECT state, count(*) FROM runs GROUP BY state")}


def _count(cursor: sqlite3.Cursor, where: str, values: list[object]) -> int:
    found: int = cursor.execute(f"SELECT count(*) FROM runs {where}", values).fetchone()[0]
    return found


def most_used(cursor: sqlite3.Cursor, limit: int) -> tuple[str, ...]:
    """Return the actions of the newest completed runs, by how often and name."""
    return tuple(row["action"] for row in cursor.execute(_MOST_USED, (limit,)))


def matching(query: RunQuery, *terms: tuple[str, object]) -> tuple[str, list[object]]:
    """Write the C{WHERE} of a query, and its values."""
    return conditions(
        among("runs.state", query.states),
        ("runs.session_id = ?", query.session_id),
        ("runs.action = ?", query.action),
        ("runs.gated = ?", query.gated),
        ("runs.parent_id = ?", query.parent_id),
        ("runs.undoes = ?", query.undoes),
        *terms,
    )
