"""C{run_attempts}: each attempt of each step, there before a byte leaves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from aileron.values import AttemptRow, from_timestamp, timestamp

from ._batch import insert_all
from ._columns import fault_of, flag_of, moment_of, of_fault, of_moment

_PUT = "INSERT INTO run_attempts (run_id, step_id, number, state, started_at, ended_at, fault, sent)"
_IN_PLACE = """
    ON CONFLICT (run_id, step_id, number) DO UPDATE SET
        state = excluded.state, ended_at = excluded.ended_at, fault = excluded.fault, sent = excluded.sent
"""
_OF_RUN = """
    SELECT run_id, step_id, number, state, started_at, ended_at, fault, sent
    FROM run_attempts WHERE run_id = ? ORDER BY ordinal
"""


def put(cursor: sqlite3.Cursor, attempts: Iterable[AttemptRow]) -> None:
    """Keep attempts; one that is there already gets its end and keeps its start."""
    insert_all(cursor, _PUT, [_row(attempt) for attempt in attempts], _IN_PLACE)


def of_run(cursor: sqlite3.Cursor, run_id: str) -> tuple[AttemptRow, ...]:
    """The attempts of a run, in the order they began."""
    return tuple(_attempt(row) for row in cursor.execute(_OF_RUN, (run_id,)))


def _row(attempt: AttemptRow) -> tuple[object, ...]:
    key = (attempt.run_id, attempt.step_id, attempt.number)
    times = (timestamp(attempt.started_at), of_moment(attempt.ended_at))
    return (*key, attempt.state, *times, of_fault(attempt.fault), attempt.sent)


def _attempt(row: tuple[Any, ...]) -> AttemptRow:
    run_id, step_id, number, state, started_at, ended_at, fault, sent = row
    key = (run_id, step_id, number)
    return AttemptRow(*key, state, from_timestamp(started_at), moment_of(ended_at), fault_of(fault), flag_of(sent))
