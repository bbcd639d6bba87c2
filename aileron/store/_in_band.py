"""Stores in the database the replies hidden by in-band mode and the requests already seen, for a limited time.

All times are the database's: the daemons that share one may have different clocks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from datetime import datetime, timedelta

from attrs import frozen
from zope.interface import implementer

from aileron.base.json import compact, timestamp, utc
from aileron.model.interfaces.store import IInBandMemories

from ._connections import Readers, shielded
from ._dialect import Cursor
from ._writer import Writer

MOST_MEMORIES = 256
"""The limit for one session.

The oldest memories beyond it are deleted, and are then missing from the model's history.
"""

MOST_CHARACTERS, MOST_CHARACTERS_IN_ALL = 16 * 1024 * 1024, 64 * 1024 * 1024
"""The limits for the contents of one session, and of all sessions together."""

KEPT = timedelta(days=7)

_KEEP = "INSERT INTO in_band_memories (session_id, keys, content, size, kept_at) VALUES (?, ?, ?, ?, ?)"
_EXPIRE = "DELETE FROM in_band_memories WHERE kept_at < ?"
# The sizes of each row and all newer ones are summed. Rows within the limits stay.
_BOUND = """
    DELETE FROM in_band_memories WHERE ordinal IN (
        SELECT ordinal FROM (
            SELECT
                ordinal,
                session_id,
                count(*) OVER own AS number,
                sum(size) OVER own AS own_size,
                sum(size) OVER (ORDER BY ordinal DESC) AS size_in_all
            FROM in_band_memories
            WINDOW own AS (PARTITION BY session_id ORDER BY ordinal DESC)
        ) AS bounded
        WHERE number > ? OR own_size > ? OR size_in_all > ?
    )
"""
_FIND_KEYS = "SELECT ordinal, keys FROM in_band_memories WHERE session_id = ? AND kept_at >= ? ORDER BY ordinal"
_CONTENT = "SELECT content FROM in_band_memories WHERE ordinal = ?"

REQUESTS_KEPT = timedelta(hours=1)

_KEEP_REQUEST = """
    INSERT INTO in_band_requests (session_id, digest, request_id, seen_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id, digest) DO UPDATE SET request_id = excluded.request_id, seen_at = excluded.seen_at
"""
_EXPIRE_REQUESTS = "DELETE FROM in_band_requests WHERE seen_at < ?"
_FIND_REQUEST = "SELECT request_id FROM in_band_requests WHERE session_id = ? AND digest = ? AND seen_at > ?"


@implementer(IInBandMemories)
@frozen
class SQLInBandMemories:
    """Stores C{in_band_memories} and C{in_band_requests}. Triggers delete the rows of a session that ends."""

    _writer: Writer
    _readers: Readers

    async def keep(self, session_id: str, keys: Sequence[str], content: str) -> None:
        row = (session_id, compact(list(keys)), content, len(content))
        await shielded(self._writer.write(_keep, row))

    async def find(self, session_id: str, keys: Sequence[str]) -> Sequence[tuple[tuple[str, ...], str]]:
        return await self._readers.read(_find, session_id, frozenset(keys))

    async def keep_request(self, session_id: str, digest: bytes, request_id: str) -> None:
        await shielded(self._writer.write(_keep_request, session_id, digest, request_id))

    async def claim_request(self, session_id: str, digest: bytes, request_id: str, within_seconds: float) -> str:
        return await shielded(self._writer.write(_claim_request, session_id, digest, request_id, within_seconds))

    async def find_request(self, session_id: str, digest: bytes, within_seconds: float) -> str | None:
        return await self._readers.read(_find_request, session_id, digest, within_seconds)


def _read_time(cursor: Cursor) -> datetime:
    return utc(float(cursor.execute(f"SELECT {cursor.dialect.now}").fetchone()[0]))


def _keep(cursor: Cursor, row: tuple[str, str, str, int]) -> None:
    now = _read_time(cursor)
    cursor.execute(_KEEP, (*row, timestamp(now)))
    cursor.execute(_EXPIRE, (timestamp(now - KEPT),))
    cursor.execute(_BOUND, (MOST_MEMORIES, MOST_CHARACTERS, MOST_CHARACTERS_IN_ALL))


def _find(cursor: Cursor, session_id: str, wanted: Set[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return the keys and the content of the memories that have one of the keys C{wanted}, oldest first."""
    since = timestamp(_read_time(cursor) - KEPT)
    rows = cursor.execute(_FIND_KEYS, (session_id, since)).fetchall()
    kept = [(row["ordinal"], tuple(json.loads(row["keys"]))) for row in rows]
    found = [(ordinal, keys) for ordinal, keys in kept if not wanted.isdisjoint(keys)]
    return [(keys, cursor.execute(_CONTENT, (ordinal,)).fetchone()["content"]) for ordinal, keys in found]


def _claim_request(cursor: Cursor, session_id: str, digest: bytes, request_id: str, within_seconds: float) -> str:
    # guard of several daemons: what is sent again to two daemons at once is one request
    #    -> store.test_in_band.RequestsTests.test_claimed, instead claimed = request_id
    claimed = _find_request(cursor, session_id, digest, within_seconds) or request_id
    _keep_request(cursor, session_id, digest, claimed)
    return claimed


def _keep_request(cursor: Cursor, session_id: str, digest: bytes, request_id: str) -> None:
    now = _read_time(cursor)
    cursor.execute(_KEEP_REQUEST, (session_id, digest, request_id, timestamp(now)))
    cursor.execute(_EXPIRE_REQUESTS, (timestamp(now - REQUESTS_KEPT),))


def _find_request(cursor: Cursor, session_id: str, digest: bytes, within_seconds: float) -> str | None:
    since = timestamp(_read_time(cursor) - timedelta(seconds=within_seconds))
    row = cursor.execute(_FIND_REQUEST, (session_id, digest, since)).fetchone()
    return None if row is None else str(row["request_id"])
