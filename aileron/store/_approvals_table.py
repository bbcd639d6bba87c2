"""C{approvals}: what the operator is asked and what was said, one for each gated run."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Any

from aileron.values import Approval, Change, Run, RunQuery, RunState, compact, from_timestamp, timestamp

from ._columns import flag_of, moment_of, of_moment
from ._runs_table import COLUMNS as RUN_COLUMNS
from ._runs_table import WIDTH, matching, run_of

_COLUMNS = """
    approvals.digest, approvals.review, approvals.requested_at, approvals.expires_at, approvals.stale,
    approvals.approved, approvals.decided_at, approvals.decided_by, approvals.reason,
    approvals.not_before, approvals.not_after, approvals.decision_mark, approvals.changes, approvals.grant_id
"""
_PUT = """
    INSERT INTO approvals (
        run_id, digest, review, requested_at, expires_at, stale, approved, decided_at, decided_by, reason,
        not_before, not_after, decision_mark, changes, grant_id
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE SET
        digest = excluded.digest, review = excluded.review, requested_at = excluded.requested_at,
        expires_at = excluded.expires_at, stale = excluded.stale, approved = excluded.approved,
        decided_at = excluded.decided_at, decided_by = excluded.decided_by, reason = excluded.reason,
        not_before = excluded.not_before, not_after = excluded.not_after, decision_mark = excluded.decision_mark,
        changes = excluded.changes, grant_id = excluded.grant_id
"""
_UNSHOWN = """
    SELECT runs.id FROM runs JOIN approvals ON approvals.run_id = runs.id
    WHERE runs.state = ? AND json_valid(approvals.review)
        AND json_type(approvals.review, '$.preview') != 'null'
        AND json_extract(approvals.review, '$.preview.status') IS NOT 'shown'
    ORDER BY runs.ordinal
"""
_JOINED = "FROM approvals JOIN runs ON runs.id = approvals.run_id"


def put(cursor: sqlite3.Cursor, approval: Approval) -> None:
    """Keep the approval of a run, in place of what stood there."""
    row = (
        approval.run.id,
        approval.digest,
        compact(approval.review),
        timestamp(approval.requested_at),
        of_moment(approval.expires_at),
        approval.stale,
        approval.approved,
        of_moment(approval.decided_at),
        approval.decided_by,
        approval.reason,
        of_moment(approval.not_before),
        of_moment(approval.not_after),
        approval.mark,
        compact([change.as_json() for change in approval.changes]) if approval.changes else None,
        approval.grant_id,
    )
    cursor.execute(_PUT, row)


def of_run(cursor: sqlite3.Cursor, run: Run) -> Approval | None:
    """The approval of C{run}, or L{None}."""
    row = cursor.execute(" ".join(("SELECT", _COLUMNS, "FROM approvals WHERE run_id = ?")), (run.id,)).fetchone()
    return None if row is None else _approval(run, row)


def select(cursor: sqlite3.Cursor, query: RunQuery, key: int | None) -> list[tuple[int, Approval]]:
    """Approvals of runs beyond the ordinal C{key}, oldest first, one more than the limit if there are more."""
    where, values = matching(query, ("runs.ordinal > ?", key))
    parts = ("SELECT runs.ordinal,", RUN_COLUMNS, ",", _COLUMNS, _JOINED, where, "ORDER BY runs.ordinal LIMIT ?")
    rows = cursor.execute(" ".join(parts), (*values, query.limit + 1))
    return [(row[0], _approval(run_of(row[1 : WIDTH + 1]), row[WIDTH + 1 :])) for row in rows]


def denials(cursor: sqlite3.Cursor, since: datetime, most: int) -> tuple[Approval, ...]:
    """The newest C{most} that were denied after C{since}, oldest first."""
    where = "WHERE approvals.approved = 0 AND approvals.decided_at > ? ORDER BY approvals.decided_at DESC LIMIT ?"
    parts = ("SELECT", RUN_COLUMNS, ",", _COLUMNS, _JOINED, where)
    rows = cursor.execute(" ".join(parts), (timestamp(since), most)).fetchall()
    return tuple(_approval(run_of(row[:WIDTH]), row[WIDTH:]) for row in reversed(rows))


def unshown(cursor: sqlite3.Cursor) -> tuple[str, ...]:
    """Ids of runs whose review tells of a preview that was not had; what tells of none in JSON is nobody's here."""
    return tuple(run_id for (run_id,) in cursor.execute(_UNSHOWN, (RunState.PENDING.value,)))


def _approval(run: Run, row: tuple[Any, ...]) -> Approval:
    digest, review, requested_at, expires_at, stale, approved, decided_at, decided_by, reason, *holds = row
    not_before, not_after, mark, changes, grant_id = holds
    return Approval(
        run=run,
        digest=digest,
        review=json.loads(review),
        requested_at=from_timestamp(requested_at),
        expires_at=moment_of(expires_at),
        stale=stale,
        approved=flag_of(approved),
        decided_at=moment_of(decided_at),
        decided_by=decided_by,
        reason=reason,
        not_before=moment_of(not_before),
        not_after=moment_of(not_after),
        mark=mark,
        changes=() if changes is None else tuple(Change(**change) for change in json.loads(changes)),
        grant_id=grant_id,
    )
