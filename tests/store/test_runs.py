"""Runs over SQLite do what every keeper of runs must."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.interfaces import IAudit, IRuns
from aileron.testing import RunsContract, memory_store
from aileron.testing._examples import NOON


class SQLiteRunsTests(RunsContract, SynchronousTestCase):
    """The contract."""

    def make_runs(self) -> tuple[IRuns, IAudit]:
        """Of a store in a temporary file."""
        clock = Clock()
        clock.advance(NOON.timestamp())
        store = memory_store(self, clock)
        return store.runs, store.audit
