"""C{audit_payloads}: what an event says beside its link, with the salt of its digest."""

from __future__ import annotations

import sqlite3


def insert(cursor: sqlite3.Cursor, sequence: int, salt: str, payload: str) -> None:
    """Keep the payload of the event C{sequence}."""
    cursor.execute("INSERT INTO audit_payloads (seq, salt, payload) VALUES (?, ?, ?)", (sequence, salt, payload))
