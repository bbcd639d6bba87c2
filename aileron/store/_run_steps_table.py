"""C{run_steps}: steps that ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from aileron.values import StepRow

from ._batch import insert_all
from ._columns import json_of, of_json

_PUT = "INSERT INTO run_steps (run_id, step_id, position, state, output)"
_IN_PLACE = """
    ON CONFLICT (run_id, step_id) DO UPDATE SET
        position = excluded.position, state = excluded.state, output = excluded.output
"""
_OF_RUN = "SELECT run_id, step_id, position, state, output FROM run_steps WHERE run_id = ? ORDER BY position, step_id"


def put(cursor: sqlite3.Cursor, steps: Iterable[StepRow]) -> None:
    """Keep steps, each in place of what stood there."""
    rows = [(step.run_id, step.step_id, step.position, step.state, of_json(step.output)) for step in steps]
    insert_all(cursor, _PUT, rows, _IN_PLACE)


def of_run(cursor: sqlite3.Cursor, run_id: str) -> tuple[StepRow, ...]:
    """The steps of a run, in order."""
    rows = cursor.execute(_OF_RUN, (run_id,))
    return tuple(StepRow(run, step, position, state, json_of(output)) for run, step, position, state, output in rows)
