"""The table of guards names what is there."""

from __future__ import annotations

from collections import Counter

from twisted.trial.unittest import SynchronousTestCase

from .any_order import GUARDS as ANY_ORDER
from .guard import PROMISES
from .table import GUARDS
from .trying import ROOT


class TableTests(SynchronousTestCase):
    """What C{python -m tests.mutants} goes by."""

    def test_each_stands(self) -> None:
        """Each guard stands where the table says, once, and can be disabled."""
        problems = {guard.what: guard.problem(ROOT) for guard in (*GUARDS, *ANY_ORDER)}
        self.assertEqual({what: problem for what, problem in problems.items() if problem is not None}, {})

    def test_enough(self) -> None:
        """There are guards of every promise, and none is there twice."""
        self.assertGreaterEqual(len(GUARDS), 40)
        self.assertEqual(set(Counter(guard.promise for guard in GUARDS)), set(PROMISES))
        self.assertEqual(len({guard.what for guard in GUARDS}), len(GUARDS))
