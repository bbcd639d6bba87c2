"""Tests of the counting behind the test command."""

from __future__ import annotations

import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.__main__ import checks, verdict
from tests.tally import Tally, judge, read_records, read_trial, run

_GREEN = "Ran 14 tests in 0.1s\n\nPASSED (skips=1, expectedFailures=1, successes=12)\n"
_RED = "Ran 6 tests in 0.1s\n\nFAILED (failures=2, errors=1, successes=3)\n"


class ReadTrialTests(SynchronousTestCase):
    """What trial says at its end is read as numbers."""

    def test_passed(self) -> None:
        """Successes and expected failures count as passed, skips apart."""
        self.assertEqual(read_trial(_GREEN), Tally(13, 0, 1))

    def test_failed(self) -> None:
        """Failures and errors count as failed."""
        self.assertEqual(read_trial(_RED), Tally(3, 3, 0))

    def test_last_verdict(self) -> None:
        """A verdict that a test itself printed does not count, the last one does."""
        self.assertEqual(read_trial(_GREEN + _RED), Tally(3, 3, 0))

    def test_no_verdict(self) -> None:
        """Output without a verdict has no tally."""
        self.assertIsNone(read_trial("Traceback (most recent call last):\n"))


class JudgeTests(SynchronousTestCase):
    """A run that went wrong is never counted as clean."""

    def test_died(self) -> None:
        """A run without a verdict is one failure."""
        self.assertEqual(judge("", 0), Tally(failed=1))

    def test_status(self) -> None:
        """A failing status with a clean verdict is one failure."""
        self.assertEqual(judge(_GREEN, 1), Tally(13, 1, 1))

    def test_clean(self) -> None:
        """A clean run is counted as it says."""
        self.assertEqual(judge(_GREEN, 0), Tally(13, 0, 1))


class RunTests(SynchronousTestCase):
    """The command's status and record tell the same story."""

    def run_script(self, script: str) -> tuple[int, Tally]:
        """Run a Python script as if it were trial."""
        directory = Path(self.mktemp())
        status = run(directory / "made.json", [sys.executable, "-c", script])
        return status, read_records(directory)["made"]

    def test_passes(self) -> None:
        """A clean run leaves its numbers and status 0."""
        self.assertEqual(self.run_script("print('PASSED (successes=2)')"), (0, Tally(2)))

    def test_fails(self) -> None:
        """A failing run keeps its status."""
        script = "print('FAILED (errors=1, successes=2)'); raise SystemExit(3)"
        self.assertEqual(self.run_script(script), (3, Tally(2, 1)))

    def test_nothing_ran(self) -> None:
        """A run without a single passed test fails."""
        self.assertEqual(self.run_script("print('PASSED (skips=4)')"), (1, Tally(skipped=4)))


class VerdictTests(SynchronousTestCase):
    """The closing line adds up the runs and the checks that are no test runs."""

    def test_sum(self) -> None:
        """The last line is the sum of all runs."""
        total, lines = verdict({"a": Tally(2), "b": Tally(3, 1)}, {"a": True, "b": False})
        self.assertEqual(total, Tally(5, 1))
        self.assertEqual(lines[-1], "5 passed, 1 failed")

    def test_silent_check(self) -> None:
        """A failed check without a failed test counts as one failure and is named."""
        total, lines = verdict({"a": Tally(2)}, {"lint": False, "a": False})
        self.assertEqual(total, Tally(2, 2))
        self.assertIn("lint: failed", lines)

    def test_no_tests(self) -> None:
        """A check that has no tests is told as passed, and no tests are counted."""
        self.assertEqual(verdict({}, {"lint": True}), (Tally(), ["lint: passed"]))

    def test_checks(self) -> None:
        """Tox's result file names what ran, and how; not what was skipped or not asked for."""
        skipped = {"success": True, "skipped": True}
        results = {"a": {"success": True, "skipped": False}, "b": {"success": False}, "c": skipped}
        found = {"testenvs": {**{name: {"result": each} for name, each in results.items()}, "d": {}}}
        self.assertEqual(checks(found), {"a": True, "b": False})
