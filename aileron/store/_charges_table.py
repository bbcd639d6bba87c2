"""C{charges}: what was counted against a limit, for as long as a window may look back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from aileron.errors import LimitExceeded
from aileron.values import Charge, from_timestamp, timestamp

_KEPT = timedelta(days=2)
_WITHIN = "SELECT count(*) FROM charges WHERE key = ? AND at > ?"
_LEAVES = "SELECT at FROM charges WHERE key = ? AND at > ? ORDER BY at LIMIT 1 OFFSET ?"
_FORGET = """
    DELETE FROM charges WHERE at < ? AND ordinal IN (SELECT ordinal FROM charges ORDER BY ordinal LIMIT 100)
"""


def charge(cursor: sqlite3.Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Count each of C{charges} at the moment C{at}, and forget what no window reaches any more.

    A clock that was set back counts what lies ahead of it as well: nothing is won by turning it.

    :raises LimitExceeded: one of them is full; with C{details["retry_after"]} in seconds.
    """
    keys = {each.key for each in charges}
    room(cursor, charges, at)
    if keys:
        cursor.execute(_FORGET, (timestamp(at - _KEPT),))  # the oldest lie first, and a few at a time are enough
        rows = [(key, timestamp(at)) for key in sorted(keys)]
        cursor.executemany("INSERT INTO charges (key, at) VALUES (?, ?)", rows)


def room(cursor: sqlite3.Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Pass only where none of C{charges} is full; errors as of L{charge}."""
    for each in charges:
        _refuse_beyond(cursor, each, at)


def _refuse_beyond(cursor: sqlite3.Cursor, charge: Charge, at: datetime) -> None:
    since = at - timedelta(seconds=charge.seconds)
    within = (charge.key, timestamp(since))
    counted: int = cursor.execute(_WITHIN, within).fetchone()[0]
    if counted >= charge.most:
        leaves = cursor.execute(_LEAVES, (*within, counted - charge.most)).fetchone()
        left = charge.seconds if leaves is None else (from_timestamp(leaves[0]) - since).total_seconds()
        raise LimitExceeded(charge.message, {"retry_after": max(1, round(left))})
