"""Ids."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon import fresh_ids

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class IdsTests(SynchronousTestCase):
    """L{fresh_ids}."""

    def test_form(self) -> None:
        """An id is a ULID: its first ten letters are the milliseconds, as the published example has them."""
        clock = Clock()
        clock.advance(1469922850.259)
        found = fresh_ids(clock)()
        self.assertEqual(found[:10], "01ARZ3NDEK")
        self.assertEqual(len(found), 26)
        self.assertLessEqual(set(found), set(_LETTERS))

    @settings(deadline=None, max_examples=50)
    @given(st.floats(0, 2**33), st.floats(0.001, 2**33))
    def test_order(self, first: float, later: float) -> None:
        """Ids of a later millisecond sort after those before."""
        clock = Clock()
        ids = fresh_ids(clock)
        clock.advance(first)
        before, began = ids(), int(clock.seconds() * 1000)
        clock.advance(later)
        if int(clock.seconds() * 1000) > began:
            self.assertLess(before, ids())

    def test_fresh(self) -> None:
        """Ids of one moment differ, in all of their last letters."""
        ids = fresh_ids(Clock())
        drawn = [ids() for _ in range(1000)]
        self.assertEqual(len(set(drawn)), 1000)
        self.assertTrue(all(len({one[place] for one in drawn}) > 16 for place in range(10, 26)))
