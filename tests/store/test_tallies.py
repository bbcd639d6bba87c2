"""What is counted against limits refuses exactly where counting all of it anew would."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import LimitExceeded
from aileron.store import _charges_table as charges_table
from aileron.store._batch import Batch
from aileron.store._tallies import Tallies
from aileron.testing._examples import NOON
from aileron.values import Charge

_TABLE = "CREATE TABLE charges (ordinal INTEGER PRIMARY KEY, key TEXT NOT NULL, at TEXT NOT NULL)"

_WHAT = st.builds(
    Charge, st.sampled_from("ab"), st.integers(1, 3), st.sampled_from([60.0, 60.0, 120.0]), st.just("full")
)
_RUNS = st.tuples(
    st.sampled_from([0, 1, 90, -90]), st.lists(_WHAT, min_size=1, max_size=2), st.booleans(), st.booleans()
)


class _Counting(Tallies):
    """Knows of no room: all is counted at each charge."""

    def has_room(self, charge: Charge, since: object) -> bool:
        """See L{Tallies.has_room}."""
        return False


def _outcomes(tallies: Tallies, runs: list[tuple[int, list[Charge], bool, bool]]) -> list[object]:
    """What became of each run: charged, and either kept or undone; several may share a transaction."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(_TABLE)
        batch, at, found = connection.cursor(Batch), NOON, list[object]()
        batch.execute("BEGIN")
        for seconds, charges, ends, kept in runs:
            at += timedelta(seconds=seconds)
            try:
                charges_table.charge(batch, tallies, charges, at)
            except LimitExceeded as full:
                found.append(full.details["retry_after"])
            else:
                found.append("passed")
            if ends:
                _end(batch, kept)
        return found


def _end(batch: Batch, kept: bool) -> None:
    if kept:
        batch.settle()
    else:
        batch.forget()
    batch.execute("COMMIT" if kept else "ROLLBACK")
    batch.execute("BEGIN")


class TalliesTests(SynchronousTestCase):
    """What may be passed without a look."""

    def setUp(self) -> None:
        """Two were counted within the last minute."""
        self.tallies, self.charge = Tallies(), Charge("key", 3, 60.0, "full")
        self.tallies.learn(self.charge, NOON, 2)

    def test_room(self) -> None:
        """There is room until as many were added as are allowed."""
        self.assertTrue(self.tallies.has_room(self.charge, NOON))
        self.tallies.add(["key", "other"])
        self.assertFalse(self.tallies.has_room(self.charge, NOON))

    def test_set_back(self) -> None:
        """Of a window that begins before the one that was counted nothing is known."""
        self.assertFalse(self.tallies.has_room(self.charge, NOON - timedelta(seconds=1)))

    def test_unknown(self) -> None:
        """Of another key or another length of window nothing is known."""
        self.assertFalse(self.tallies.has_room(Charge("other", 3, 60.0, ""), NOON))
        self.assertFalse(self.tallies.has_room(Charge("key", 3, 61.0, ""), NOON))

    def test_forgets(self) -> None:
        """Beyond so many keys the first is forgotten."""
        tallies = Tallies(1)
        tallies.learn(self.charge, NOON, 0)
        tallies.learn(Charge("other", 3, 60.0, ""), NOON, 0)
        self.assertFalse(tallies.has_room(self.charge, NOON))
        self.assertTrue(tallies.has_room(Charge("other", 3, 60.0, ""), NOON))

    @settings(deadline=None, max_examples=150)
    @given(st.lists(_RUNS, min_size=1, max_size=25))
    def test_same_as_counting(self, runs: list[tuple[int, list[Charge], bool, bool]]) -> None:
        """Whatever the clock does and whatever is undone, the same runs pass and the same are refused, as long."""
        self.assertEqual(_outcomes(Tallies(), runs), _outcomes(_Counting(), runs))

    def test_looks_are_few(self) -> None:
        """Where there is room, only the first charge of a key has all of it counted."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.execute(_TABLE)
            asked: list[str] = []
            connection.set_trace_callback(asked.append)
            batch = connection.cursor(Batch)
            for _ in range(5):
                charges_table.charge(batch, self.tallies, [Charge("busy", 10, 60.0, "full")], NOON)
                batch.settle()
        self.assertEqual(sum("count(*)" in each for each in asked), 1)
