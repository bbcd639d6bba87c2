"""C{watermarks}: how far something had come that is kept elsewhere."""

from __future__ import annotations

import sqlite3


def put(cursor: sqlite3.Cursor, name: str, value: str) -> None:
    """Keep one, in the place of an earlier one."""
    cursor.execute("INSERT OR REPLACE INTO watermarks (name, value) VALUES (?, ?)", (name, value))


def select(cursor: sqlite3.Cursor) -> dict[str, str]:
    """All, by name."""
    return dict(cursor.execute("SELECT name, value FROM watermarks"))
