"""C{audit_payloads}: what an event says beside its link, with the salt of its digest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable


def insert(cursor: sqlite3.Cursor, payloads: Iterable[tuple[int, str, str]]) -> None:
    """Keep payloads: the sequence of the event, the salt, the text."""
    cursor.executemany("INSERT INTO audit_payloads (seq, salt, payload) VALUES (?, ?, ?)", payloads)
