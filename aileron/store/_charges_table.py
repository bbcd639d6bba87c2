"""C{charges}: what was counted against a limit, for as long as a window may look back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta

from aileron.errors import LimitExceeded
from aileron.values import Charge, from_timestamp, timestamp

_KEPT = timedelta(days=2)
_WITHIN = "SELECT count(*), min(at) FROM charges WHERE key = ? AND at > ?"


def charge(cursor: sqlite3.Cursor, charges: Iterable[Charge], at: datetime) -> None:
    """Count each of C{charges} at the moment C{at}, and forget what no window reaches any more.

    A clock that was set back counts what lies ahead of it as well: nothing is won by turning it.

    :raises LimitExceeded: one of them is full; with C{details["retry_after"]} in seconds.
    """
    keys = {each.key for each in charges}
    for each in charges:
        _refuse_beyond(cursor, each, at)
    if keys:
        cursor.execute("DELETE FROM charges WHERE at < ?", (timestamp(at - _KEPT),))
        rows = [(key, timestamp(at)) for key in sorted(keys)]
        cursor.executemany("INSERT INTO charges (key, at) VALUES (?, ?)", rows)


def _refuse_beyond(cursor: sqlite3.Cursor, charge: Charge, at: datetime) -> None:
    since = at - timedelta(seconds=charge.seconds)
    counted, oldest = cursor.execute(_WITHIN, (charge.key, timestamp(since))).fetchone()
    if counted >= charge.most:
        left = charge.seconds if oldest is None else (from_timestamp(oldest) - since).total_seconds()
        raise LimitExceeded(charge.message, {"retry_after": max(1, round(left))})
