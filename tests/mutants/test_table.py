"""The table of guards names what is there."""

from __future__ import annotations

from collections import Counter

from twisted.trial.unittest import SynchronousTestCase

from tests.test_security import exists

from .guard import PROMISES, RELAY
from .table import ATTACKED, GUARDS
from .trying import ROOT


class TableTests(SynchronousTestCase):
    """What C{python -m tests.mutants} goes by."""

    def test_each_stands(self) -> None:
        """Each guard stands where the table says, once, and can be disabled."""
        problems = {guard.what: guard.problem(ROOT) for guard in (*GUARDS, *ATTACKED)}
        self.assertEqual({what: problem for what, problem in problems.items() if problem is not None}, {})

    def test_enough(self) -> None:
        """There are guards of every promise and of the relay, and none is there twice."""
        self.assertGreaterEqual(len(GUARDS), 40)
        self.assertEqual(set(Counter(guard.promise for guard in GUARDS)), {*PROMISES, RELAY})
        self.assertEqual(len({guard.what for guard in GUARDS}), len(GUARDS))

    def test_attacks(self) -> None:
        """Each guard against an attack is there once, and names an attack that there is."""
        self.assertEqual(len({guard.what for guard in ATTACKED}), len(ATTACKED))
        missing = [guard.test for guard in ATTACKED if not exists(guard.test.removeprefix("test_"))]
        self.assertEqual(missing, [])
