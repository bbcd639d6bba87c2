"""C{audit_payloads}: what an event says beside its link, with the salt of its digest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ._batch import insert_all


def insert(cursor: sqlite3.Cursor, payloads: Sequence[tuple[int, str, str]]) -> None:
    """Keep payloads: the sequence of the event, the salt, the text."""
    insert_all(cursor, "INSERT INTO audit_payloads (seq, salt, payload)", payloads)


def oldest(cursor: sqlite3.Cursor) -> int | None:
    """The sequence of the oldest one, or L{None}."""
    row = cursor.execute("SELECT min(seq) FROM audit_payloads").fetchone()
    return None if row[0] is None else int(row[0])


def delete(cursor: sqlite3.Cursor, up_to: int, limit: int) -> int:
    """Delete at most C{limit} of the oldest, up to the sequence C{up_to}, and overwrite where they lay; how many."""
    cursor.execute("PRAGMA secure_delete=ON")
    try:
        chosen = "SELECT seq FROM audit_payloads WHERE seq <= ? ORDER BY seq LIMIT ?"
        return cursor.execute(f"DELETE FROM audit_payloads WHERE seq IN ({chosen})", (up_to, limit)).rowcount
    finally:
        cursor.execute("PRAGMA secure_delete=OFF")
