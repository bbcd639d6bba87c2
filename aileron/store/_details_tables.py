"""The tables that belong to runs: C{run_steps}, C{run_attempts}, and C{charges}, which counts runs against limits."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from attrs import frozen

from aileron.errors import LimitExceeded
from aileron.values import AttemptRow, Charge, Fault, StepRow, from_timestamp, timestamp

from ._table import FLAG, JSON_TEXT, MOMENT, PLAIN, Table, value

STEPS = Table(
    "run_steps",
    StepRow,
    {"run_id": PLAIN, "step_id": PLAIN, "position": PLAIN, "state": PLAIN, "output": JSON_TEXT.or_null()},
)
ATTEMPTS = Table(
    "run_attempts",
    AttemptRow,
    {
        "run_id": PLAIN,
        "step_id": PLAIN,
        "number": PLAIN,
        "state": PLAIN,
        "started_at": MOMENT,
        "ended_at": MOMENT.or_null(),
        "fault": value(Fault).or_null(),
        "sent": FLAG.or_null(),
    },
)
STEPS_OF_RUN = "WHERE run_id = ? ORDER BY position, step_id"
ATTEMPTS_OF_RUN = "WHERE run_id = ? ORDER BY ordinal"
STEP_IN_PLACE = STEPS.overwriting("run_id", "step_id")
ATTEMPT_IN_PLACE = ATTEMPTS.overwriting("run_id", "step_id", "number", keep=("started_at",))


@frozen
class _Counted:
    key: str
    at: datetime


CHARGES = Table("charges", _Counted, {"key": PLAIN, "at": MOMENT})
_SPAN = "SELECT (SELECT max(ordinal) FROM charges) - (SELECT min(ordinal) FROM charges)"
_WITHIN = "SELECT count(*) FROM charges WHERE key = ? AND at > ?"
_LEAVES = "SELECT at FROM charges WHERE key = ? AND at > ? ORDER BY at LIMIT 1 OFFSET ?"
_FORGET = """
    DELETE FROM charges WHERE at < ? AND ordinal IN (SELECT ordinal FROM charges ORDER BY ordinal LIMIT ?)
"""
_KEPT = timedelta(days=2)
_FORGOTTEN = 2  # of the oldest, for each that comes: they grow fewer


def charge(cursor: sqlite3.Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Count each of C{charges} at the moment C{at}, and forget what no window reaches any more.

    A clock that was set back counts what lies ahead of it as well: nothing is won by turning it.

    :raises LimitExceeded: one of them is full; with C{details["retry_after"]} in seconds.
    """
    if not charges:
        return
    check_room(cursor, charges, at)
    keys = sorted({each.key for each in charges})
    cursor.execute(_FORGET, (timestamp(at - _KEPT), _FORGOTTEN * len(keys)))
    CHARGES.insert(cursor, [_Counted(key, at) for key in keys])


def check_room(cursor: sqlite3.Cursor, charges: Sequence[Charge], at: datetime) -> None:
    """Pass only where none of C{charges} is full; errors as of L{charge}.

    Counting takes as long as there is to count, and no limit above the number of all rows can be full.
    """
    span: int | None = cursor.execute(_SPAN).fetchone()[0]
    for each in charges:
        if span is None or span + 1 < each.most:
            continue
        since = at - timedelta(seconds=each.seconds)
        within = (each.key, timestamp(since))
        counted: int = cursor.execute(_WITHIN, within).fetchone()[0]
        if counted >= each.most:
            leaves = cursor.execute(_LEAVES, (*within, counted - each.most)).fetchone()
            left = each.seconds if leaves is None else (from_timestamp(leaves["at"]) - since).total_seconds()
            raise LimitExceeded(each.message, {"retry_after": max(1, round(left))})
