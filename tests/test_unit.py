"""Tests of how the unit tests are collected, and shared by processes side by side."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.reporter import TestResult
from twisted.trial.unittest import SynchronousTestCase

from tests.tally import TAKEN
from tests.unit import _LONGEST, Untaken, modules, tests_of


class ModulesTests(SynchronousTestCase):
    """Which modules there are."""

    def test_listed(self) -> None:
        """Each is there once, in rooms and beside them, but for those of installed programs; the longest come first."""
        names = modules()
        self.assertEqual(len(names), len(set(names)))
        self.assertLess({"tests.test_unit", "tests.vault.test_vault", "tests.matrix.races.test_races"}, set(names))
        self.assertEqual([name for name in names if name.startswith("tests.functional")], [])
        self.assertEqual([first for first in _LONGEST if not any(name.startswith(first) for name in names)], [])
        self.assertTrue(names[0].startswith(_LONGEST[0]), names[0])

    def test_broken(self) -> None:
        """One that cannot be imported fails as a test does."""
        result = TestResult()
        for test in tests_of("tests.nothing_of_this_name"):
            test.run(result)
        self.assertEqual((len(result.errors), result.successes), (1, 0))


class UntakenTests(SynchronousTestCase):
    """What one process runs of them."""

    def test_shared(self) -> None:
        """It takes what no other took, so that others leave it alone."""
        taken = Path(self.mktemp())
        taken.mkdir()
        (taken / "tests.base.test_toml").touch()
        self.patch(os, "environ", {**os.environ, TAKEN: str(taken)})
        for successes in (len([*tests_of("tests.test_extent")]), 0):
            result = TestResult()
            Untaken(["tests.base.test_toml", "tests.test_extent"]).run(result)
            self.assertEqual((result.successes, result.errors, result.failures), (successes, [], []))
