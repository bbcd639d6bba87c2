"""C{action_overlay}: what the operator switched off, or on again."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from aileron.values import timestamp

_PUT = """
    INSERT INTO action_overlay (action, enabled, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (action) DO UPDATE SET enabled = excluded.enabled, changed_at = excluded.changed_at
"""


def put(cursor: sqlite3.Cursor, action: str, enabled: bool, at: datetime) -> None:
    """Switch one."""
    cursor.execute(_PUT, (action, enabled, timestamp(at)))


def disabled(cursor: sqlite3.Cursor) -> frozenset[str]:
    """Names of those that are off."""
    return frozenset(name for (name,) in cursor.execute("SELECT action FROM action_overlay WHERE NOT enabled"))
