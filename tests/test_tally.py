"""Tests of the counting behind the test command."""

from __future__ import annotations

import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.__main__ import checks, verdict
from tests.tally import Tally, judge, read_records, read_trial, run

_GREEN = "Ran 14 tests in 0.1s\n\nPASSED (skips=1, expectedFailures=1, successes=12)\n"
_RED = "Ran 6 tests in 0.1s\n\nFAILED (failures=2, errors=1, successes=3)\n"
_SHARED = """
import os, pathlib
try:
    pathlib.Path(os.environ["AILERON_TESTS_TAKEN"], "first").touch(exist_ok=False)
    print("PASSED (successes=2)")
except FileExistsError:
    print("FAILED (errors=1, successes=1)")
    raise SystemExit(3)
"""


class JudgeTests(SynchronousTestCase):
    """What trial says at its end is read as numbers, and a run that went wrong is never counted as clean."""

    def test_output(self) -> None:
        """The last verdict counts, with what passed, failed and was skipped; a run that died is one failure."""
        self.assertIsNone(read_trial("Traceback (most recent call last):\n"))
        for output, status, tally in (
            (_GREEN, 0, Tally(13, 0, 1)),
            (_RED, 1, Tally(3, 3, 0)),
            (_GREEN + _RED, 1, Tally(3, 3, 0)),
            ("", 0, Tally(failed=1)),
            (_GREEN, 1, Tally(13, 1, 1)),
        ):
            self.assertEqual(judge(output, status), tally)


class RunTests(SynchronousTestCase):
    """The command's status and record tell the same story."""

    def run_script(self, script: str, jobs: int = 1) -> tuple[int, Tally]:
        """Run a Python script as if it were trial."""
        directory = Path(self.mktemp())
        status = run(directory / "made.json", [sys.executable, "-c", script], jobs)
        return status, read_records(directory)["made"]

    def test_run(self) -> None:
        """A run leaves its numbers and keeps its status; one without a single passed test fails."""
        for script, status, tally in (
            ("print('PASSED (successes=2)')", 0, Tally(2)),
            ("print('FAILED (errors=1, successes=2)'); raise SystemExit(3)", 3, Tally(2, 1)),
            ("print('PASSED (skips=4)')", 1, Tally(skipped=4)),
        ):
            self.assertEqual(self.run_script(script), (status, tally))

    def test_side_by_side(self) -> None:
        """Processes that share the work are added up, each knows what the others took, and one that fails is seen."""
        self.assertEqual(self.run_script(_SHARED, 2), (3, Tally(3, 1)))


class VerdictTests(SynchronousTestCase):
    """The closing line adds up the runs and the checks that are no test runs."""

    def test_sum(self) -> None:
        """The last line sums all runs up; a failed check without a failed test is one failure and is named."""
        total, lines = verdict({"a": Tally(2), "b": Tally(3, 1)}, {"a": True, "b": False})
        self.assertEqual(total, Tally(5, 1))
        self.assertEqual(lines[-1], "5 passed, 1 failed")
        total, lines = verdict({"a": Tally(2)}, {"lint": False, "a": False})
        self.assertEqual(total, Tally(2, 2))
        self.assertIn("lint: failed", lines)
        self.assertEqual(verdict({}, {"lint": True}), (Tally(), ["lint: passed"]))

    def test_checks(self) -> None:
        """Tox's result file names what ran, and how; not what was skipped or not asked for."""
        skipped = {"success": True, "skipped": True}
        results = {"a": {"success": True, "skipped": False}, "b": {"success": False}, "c": skipped}
        found = {"testenvs": {**{name: {"result": each} for name, each in results.items()}, "d": {}}}
        self.assertEqual(checks(found), {"a": True, "b": False})
