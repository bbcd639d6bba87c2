"""C{runs}: every invocation, from its first moment."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from aileron.errors import NotFound, StateConflict
from aileron.values import Run, RunQuery, RunState, Transition, compact, from_timestamp, timestamp

from ._batch import AT_ONCE, insert_all, places
from ._columns import among, conditions, fault_of, json_of, moment_of, of_fault, of_json, of_moment, one_of

COLUMNS = """
    runs.id, runs.action, runs.action_version, runs.manifest_digest, runs.arguments, runs.state, runs.gated,
    runs.effect_key, runs.received_at, runs.changed_at, runs.session_id, runs.idempotency_key, runs.result,
    runs.fault, runs.reason, runs.audit_id, runs.asked, runs.parent_id, runs.start_after
"""
WIDTH = 19
_INSERT = """
    INSERT INTO runs (
        id, action, action_version, manifest_digest, arguments, state, gated, effect_key, received_at, changed_at,
        session_id, idempotency_key, result, fault, reason, audit_id, asked, parent_id, start_after
    )
"""
_UPDATE = """
    UPDATE runs SET state = ?, changed_at = ?, result = ?, fault = ?, reason = ?, audit_id = ?, start_after = ?
    WHERE id = ? AND state = ?
"""
_STOOD = COLUMNS.replace("runs.result", "NULL").replace("runs.fault", "NULL")  # what any change replaces
_CHANGED = ("state", "changed_at", "result", "fault", "reason", "audit_id")
_MOVE = f"""
    UPDATE runs SET
        {", ".join(f"{name} = new.column{place}" for place, name in enumerate(_CHANGED, 1))},
        start_after = coalesce(new.column7, start_after)
    FROM (%s) AS new
    WHERE runs.id = new.column8 AND runs.state = new.column9 RETURNING {_STOOD}
"""
_MOVE_WIDTH = 9
_EDIT = "UPDATE runs SET arguments = ?, asked = ? WHERE id = ?"
_BY_KEY = """
    WHERE idempotency_key = ? AND action = ? AND session_id IS ? AND received_at > ?
    ORDER BY ordinal DESC LIMIT 1
"""
_UNFINISHED = """
    WHERE state IN ('received', 'pending_approval', 'approved', 'awaiting_vault', 'executing') ORDER BY ordinal
"""
_MOST_USED = """
    SELECT action FROM (
        SELECT action FROM runs WHERE state = 'completed' ORDER BY ordinal DESC LIMIT 2000
    )
    GROUP BY action ORDER BY count(*) DESC, action LIMIT ?
"""


def insert(cursor: sqlite3.Cursor, runs: Iterable[Run]) -> None:
    """Add runs."""
    insert_all(cursor, _INSERT, [_row(run) for run in runs])


def update(cursor: sqlite3.Cursor, run: Run, start: RunState) -> bool:
    """Bring the row of C{run} to what C{run} says, if it stands in C{start}.

    :return: whether it stood there.
    """
    changed = (run.state.value, timestamp(run.changed_at), of_json(run.result), of_fault(run.fault))
    rest = (run.reason, run.audit_id, of_moment(run.start_after))
    cursor.execute(_UPDATE, (*changed, *rest, run.id, start.value))
    return cursor.rowcount == 1


def move(cursor: sqlite3.Cursor, changes: Sequence[Transition]) -> list[Run]:
    """Bring the rows of runs to what C{changes} make of them.

    :param changes: those that neither ask nor edit.
    :return: what each has become.
    :raises NotFound: there is no such run.
    :raises StateConflict: it does not stand where its change starts; or it is one of several changes of the same run,
        which only one after the other can be made.
    """
    parts = (changes[done : done + AT_ONCE] for done in range(0, len(changes), AT_ONCE))
    return [run for some in parts for run in _move(cursor, some)]


def _move(cursor: sqlite3.Cursor, changes: Sequence[Transition]) -> list[Run]:
    values = [value for change in changes for value in _changed(change)]
    rows = cursor.execute(_moving(len(changes)), values).fetchall()
    found = {row[0]: row for row in rows}
    if len(found) < len(changes):
        raise _contested(cursor, next((each.run_id for each in changes if each.run_id not in found), changes[0].run_id))
    return [change.applied(run_of(found[change.run_id])) for change in changes]


@lru_cache(maxsize=AT_ONCE)
def _moving(size: int) -> str:
    return _MOVE % places(_MOVE_WIDTH, size)


def _changed(change: Transition) -> tuple[object, ...]:
    changed = (change.end.value, timestamp(change.at), of_json(change.result), of_fault(change.fault))
    rest = (change.reason, change.audit_id, of_moment(change.start_after))
    return (*changed, *rest, change.run_id, change.start.value)


def _contested(cursor: sqlite3.Cursor, run_id: str) -> NotFound | StateConflict:
    run = get(cursor, run_id)
    return NotFound("There is no such run.") if run is None else StateConflict(run)


def edit(cursor: sqlite3.Cursor, run: Run) -> None:
    """Keep other arguments than those that were asked for, and these beside them."""
    cursor.execute(_EDIT, (compact(run.arguments), None if run.asked is None else compact(run.asked), run.id))


def get(cursor: sqlite3.Cursor, run_id: str) -> Run | None:
    """The run, or L{None}."""
    return _one(cursor, "WHERE id = ?", run_id)


def by_key(cursor: sqlite3.Cursor, session_id: str | None, action: str, key: str, since: datetime) -> Run | None:
    """The newest run after C{since} that used the idempotency key, or L{None}."""
    return _one(cursor, _BY_KEY, key, action, session_id, timestamp(since))


def unfinished(cursor: sqlite3.Cursor) -> tuple[Run, ...]:
    """Runs that are not settled, oldest first."""
    rows = cursor.execute(" ".join(("SELECT", COLUMNS, "FROM runs", _UNFINISHED)))
    return tuple(run_of(row) for row in rows)


def pending(cursor: sqlite3.Cursor, *, session_id: str | None = None, action: str | None = None) -> int:
    """How many runs wait for a decision, of one session, of one action, or of all."""
    waits = ("state = ?", RunState.PENDING.value)
    where, values = conditions(waits, ("session_id = ?", session_id), ("action = ?", action))
    count: int = cursor.execute(" ".join(("SELECT count(*) FROM runs", where)), values).fetchone()[0]
    return count


def select(cursor: sqlite3.Cursor, query: RunQuery, key: int | None) -> list[tuple[int, Run]]:
    """Runs beyond the ordinal C{key}, one more than the limit if there are more."""
    beyond, order = (">", "ASC") if query.oldest_first else ("<", "DESC")
    where, values = matching(query, (f"ordinal {beyond} ?", key))
    tail = f"ORDER BY ordinal {order} LIMIT ?"
    rows = cursor.execute(" ".join(("SELECT ordinal,", COLUMNS, "FROM runs", where, tail)), (*values, query.limit + 1))
    return [(row[0], run_of(row[1:])) for row in rows]


def count(cursor: sqlite3.Cursor, query: RunQuery) -> int:
    """How many runs match."""
    where, values = matching(query)
    found: int = cursor.execute(" ".join(("SELECT count(*) FROM runs", where)), values).fetchone()[0]
    return found


def most_used(cursor: sqlite3.Cursor, limit: int) -> tuple[str, ...]:
    """The actions of the newest completed runs, by how often and name."""
    return tuple(row[0] for row in cursor.execute(_MOST_USED, (limit,)))


def matching(query: RunQuery, *terms: tuple[str, object]) -> tuple[str, list[object]]:
    """The C{WHERE} of a query, and its values."""
    return conditions(
        (among("runs.state", query.states), one_of(query.states)),
        ("runs.session_id = ?", query.session_id),
        ("runs.action = ?", query.action),
        ("runs.gated = ?", query.gated),
        ("runs.parent_id = ?", query.parent_id),
        *terms,
    )


def run_of(row: tuple[Any, ...]) -> Run:
    """The run in L{COLUMNS}."""
    return Run(
        id=row[0],
        action=row[1],
        action_version=row[2],
        manifest_digest=row[3],
        arguments=json.loads(row[4]),
        state=RunState(row[5]),
        gated=bool(row[6]),
        effect_key=row[7],
        received_at=from_timestamp(row[8]),
        changed_at=from_timestamp(row[9]),
        session_id=row[10],
        idempotency_key=row[11],
        result=json_of(row[12]),
        fault=fault_of(row[13]),
        reason=row[14],
        audit_id=row[15],
        asked=None if row[16] is None else json.loads(row[16]),
        parent_id=row[17],
        start_after=moment_of(row[18]),
    )


def _row(run: Run) -> tuple[object, ...]:
    return (
        run.id,
        run.action,
        run.action_version,
        run.manifest_digest,
        compact(run.arguments),
        run.state.value,
        run.gated,
        run.effect_key,
        timestamp(run.received_at),
        timestamp(run.changed_at),
        run.session_id,
        run.idempotency_key,
        of_json(run.result),
        of_fault(run.fault),
        run.reason,
        run.audit_id,
        None if run.asked is None else compact(run.asked),
        run.parent_id,
        of_moment(run.start_after),
    )


def _one(cursor: sqlite3.Cursor, where: str, *values: object) -> Run | None:
    row = cursor.execute(" ".join(("SELECT", COLUMNS, "FROM runs", where)), values).fetchone()
    return None if row is None else run_of(row)
