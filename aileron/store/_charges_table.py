"""C{charges}: what was counted against a limit, for as long as a window may look back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from aileron.errors import LimitExceeded
from aileron.values import Charge, from_timestamp, timestamp

from ._batch import Batch, insert_all
from ._tallies import Tallies

_KEPT = timedelta(days=2)
_WITHIN = "SELECT count(*) FROM charges WHERE key = ? AND at > ?"
_LEAVES = "SELECT at FROM charges WHERE key = ? AND at > ? ORDER BY at LIMIT 1 OFFSET ?"
_FORGET = """
    DELETE FROM charges WHERE at < ? AND ordinal IN (SELECT ordinal FROM charges ORDER BY ordinal LIMIT ?)
"""
_FORGOTTEN = 100  # at least, of the oldest: more than come


def charge(batch: Batch, tallies: Tallies, charges: Sequence[Charge], at: datetime) -> None:
    """Count each of C{charges} at the moment C{at}, and forget what no window reaches any more.

    A clock that was set back counts what lies ahead of it as well: nothing is won by turning it.

    :param tallies: told of all that was ever counted here in this life.
    :raises LimitExceeded: one of them is full; with C{details["retry_after"]} in seconds.
    """
    for each in charges:
        since = _since(each, at)
        if not tallies.has_room(each, since):
            batch.pay(put)
            tallies.learn(each, since, _counted(batch, each, at))
    keys = {each.key for each in charges}
    tallies.add(keys)
    batch.owe(put, [(key, at) for key in sorted(keys)])


def put(cursor: sqlite3.Cursor, rows: Sequence[tuple[str, datetime]]) -> None:
    """Keep what was counted: keys and moments, oldest first."""
    _, at = rows[-1]
    most = max(_FORGOTTEN, 2 * len(rows))
    cursor.execute(_FORGET, (timestamp(at - _KEPT), most))  # the oldest lie first, and a few at a time are enough
    insert_all(cursor, "INSERT INTO charges (key, at)", [(key, timestamp(at)) for key, at in rows])


def room(cursor: sqlite3.Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Pass only where none of C{charges} is full; errors as of L{charge}."""
    for each in charges:
        _counted(cursor, each, at)


def _counted(cursor: sqlite3.Cursor, charge: Charge, at: datetime) -> int:
    """How many there are in the window.

    :raises LimitExceeded: as many as may.
    """
    since = _since(charge, at)
    within = (charge.key, timestamp(since))
    counted: int = cursor.execute(_WITHIN, within).fetchone()[0]
    if counted >= charge.most:
        leaves = cursor.execute(_LEAVES, (*within, counted - charge.most)).fetchone()
        left = charge.seconds if leaves is None else (from_timestamp(leaves[0]) - since).total_seconds()
        raise LimitExceeded(charge.message, {"retry_after": max(1, round(left))})
    return counted


def _since(charge: Charge, at: datetime) -> datetime:
    return at - timedelta(seconds=charge.seconds)
