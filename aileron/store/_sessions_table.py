"""C{sessions}: agents' sessions and the digests of their tokens."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime

from aileron.values import Process, Session, SessionEnding, SessionTally, from_timestamp, timestamp

from ._queries import conditions
from ._table import FLAG, MOMENT, PLAIN, Table, enum, value

_COLUMNS = {
    "id": PLAIN,
    "agent": PLAIN,
    "working_dir": PLAIN,
    "started_at": MOMENT,
    "seen_at": MOMENT,
    "ended_at": MOMENT.or_null(),
    "exit_code": PLAIN,
    "peer": value(Process).or_null(),
    "leased": FLAG,
    "ends_at": MOMENT.or_null(),
    "ending": enum(SessionEnding).or_null(),
}
SESSIONS = Table("sessions", Session, _COLUMNS)
_WRITTEN = Table("sessions", Session, {**_COLUMNS, "token_digest": PLAIN, "gateway_digest": PLAIN})
_END = "UPDATE sessions SET ended_at = ?, exit_code = ?, ending = ? WHERE id = ? AND ended_at IS NULL"
_SEEN = "UPDATE sessions SET seen_at = ? WHERE id = ? AND seen_at < ?"
_LIVE = "SELECT count(*) FROM sessions WHERE ended_at IS NULL AND seen_at > ?"
_OPENED = "SELECT started_at FROM sessions ORDER BY ordinal DESC LIMIT 1 OFFSET ?"
_FORGET = """
    DELETE FROM sessions
    WHERE ordinal <= (SELECT max(ordinal) FROM sessions) - ? AND (ended_at IS NOT NULL OR seen_at <= ?)
"""
_TALLY = """
    SELECT
        count(*),
        count(*) FILTER (WHERE state = 'pending_approval'),
        count(*) FILTER (WHERE approved = 1),
        count(*) FILTER (WHERE approved = 0),
        count(*) FILTER (WHERE state = 'completed'),
        count(*) FILTER (WHERE state = 'unknown')
    FROM runs LEFT JOIN approvals ON run_id = id
    WHERE session_id = ?
"""
_DAWN = datetime.min.replace(tzinfo=UTC)


def insert(cursor: sqlite3.Cursor, session: Session, token_digest: bytes, gateway_digest: bytes) -> None:
    """Add a session."""
    cursor.execute(_WRITTEN.insertion, (*SESSIONS.row_of(session), token_digest, gateway_digest))


def end(
    cursor: sqlite3.Cursor, session_id: str, at: datetime, exit_code: int | None, ending: SessionEnding | None
) -> bool:
    """End a live session.

    :return: whether it was live.
    """
    cursor.execute(_END, (timestamp(at), exit_code, ending, session_id))
    return cursor.rowcount == 1


def note_seen(cursor: sqlite3.Cursor, seen: Iterable[tuple[str, datetime]]) -> None:
    """Keep when sessions made their last request; never earlier than what stands there."""
    for session_id, moment in seen:
        at = timestamp(moment)
        cursor.execute(_SEEN, (at, session_id, at))


def live(cursor: sqlite3.Cursor, since: datetime) -> int:
    """Count the sessions that have not ended and made a request after C{since}."""
    count: int = cursor.execute(_LIVE, (timestamp(since),)).fetchone()[0]
    return count


def opened(cursor: sqlite3.Cursor, back: int) -> datetime:
    """When the session was opened that is C{back} places back, the newest being 1; the dawn of time: there is none."""
    row = cursor.execute(_OPENED, (back - 1,)).fetchone()
    return _DAWN if row is None else from_timestamp(row["started_at"])


def forget(cursor: sqlite3.Cursor, most: int, since: datetime) -> None:
    """Drop whatever is older than the newest C{most}, and has ended or made no request after C{since}."""
    cursor.execute(_FORGET, (most, timestamp(since)))


def get(cursor: sqlite3.Cursor, session_id: str) -> Session | None:
    """One session, or L{None}."""
    return SESSIONS.find(cursor, "WHERE id = ?", session_id)


def tally(cursor: sqlite3.Cursor, session_id: str) -> SessionTally:
    """Tell what became of what a session asked for; all nought of one that asked for nothing."""
    return SessionTally(*cursor.execute(_TALLY, (session_id,)).fetchone())


def by_token(cursor: sqlite3.Cursor, token_digest: bytes) -> Session | None:
    """Return the session of a token, or L{None}."""
    return SESSIONS.find(cursor, "WHERE token_digest = ?", token_digest)


def by_gateway_key(cursor: sqlite3.Cursor, gateway_digest: bytes) -> Session | None:
    """Return the session of a gateway key, or L{None}."""
    return SESSIONS.find(cursor, "WHERE gateway_digest = ?", gateway_digest)


def select(cursor: sqlite3.Cursor, live_only: bool, limit: int, before: int | None) -> list[tuple[int, Session]]:
    """Sessions below the ordinal C{before}, each with its own, newest first, one more than C{limit} if there are."""
    where, values = conditions(("ordinal < ?", before), ("(ended_at IS NULL) = ?", live_only or None))
    statement = f"SELECT ordinal, {SESSIONS.selection} FROM sessions {where} ORDER BY ordinal DESC LIMIT ?"
    return [(row["ordinal"], SESSIONS.value_of(row)) for row in cursor.execute(statement, (*values, limit + 1))]
