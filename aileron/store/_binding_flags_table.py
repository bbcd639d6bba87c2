"""C{binding_flags}: what must be known of a binding, one flag each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from aileron.values import BindingFlag, from_timestamp, timestamp

# The first flag of a revision stays: since when it is so is what counts.
_PUT = """
    INSERT INTO binding_flags (binding, revision, since, reason) VALUES (?, ?, ?, ?)
    ON CONFLICT (binding) DO UPDATE SET
        revision = excluded.revision, since = excluded.since, reason = excluded.reason
    WHERE excluded.revision <> binding_flags.revision
"""


def put(cursor: sqlite3.Cursor, flags: Iterable[BindingFlag]) -> None:
    """Raise flags, each in the place of one of another revision."""
    for flag in flags:
        cursor.execute(_PUT, (flag.binding, flag.revision, timestamp(flag.since), flag.reason))


def select(cursor: sqlite3.Cursor) -> dict[str, BindingFlag]:
    """All, by the binding's name."""
    rows = cursor.execute("SELECT binding, revision, since, reason FROM binding_flags ORDER BY binding")
    return {name: BindingFlag(name, revision, from_timestamp(since), why) for name, revision, since, why in rows}
