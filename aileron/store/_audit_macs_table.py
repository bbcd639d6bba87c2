"""C{audit_macs}: what seals records that were written while nothing could be signed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from aileron.values import Maced

_ALONG = """
    SELECT seq, hash, stretch, mac FROM audit_events LEFT JOIN audit_macs USING (seq)
    WHERE seq > ? ORDER BY seq LIMIT ?
"""


def insert(cursor: sqlite3.Cursor, macs: Iterable[tuple[int, str, bytes]]) -> None:
    """Keep MACs: the sequence of the record, its locked period, the MAC."""
    cursor.executemany("INSERT INTO audit_macs (seq, stretch, mac) VALUES (?, ?, ?)", macs)


def first(cursor: sqlite3.Cursor, period: str) -> int | None:
    """The sequence of the first record of a locked period, or L{None}."""
    row = cursor.execute("SELECT min(seq) FROM audit_macs WHERE stretch = ?", (period,)).fetchone()
    return None if row[0] is None else int(row[0])


def count(cursor: sqlite3.Cursor, period: str) -> int:
    """How many records of a locked period there are."""
    row = cursor.execute("SELECT count(*) FROM audit_macs WHERE stretch = ?", (period,)).fetchone()
    return int(row[0])


def along(cursor: sqlite3.Cursor, after: int, limit: int) -> list[Maced]:
    """Records above the sequence C{after}, oldest first, with their MACs where they have one."""
    return [Maced(*row) for row in cursor.execute(_ALONG, (after, limit))]
