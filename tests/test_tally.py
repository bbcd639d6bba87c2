"""Tests of the counting behind the test command."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.__main__ import checks, seed_of_sources, verdict
from tests.tally import Tally, judge, read_records, read_trial, run

_GREEN = "Ran 14 tests in 0.1s\n\nPASSED (skips=1, expectedFailures=1, successes=12)\n"
_FAILURES = (
    "[FAIL]\nTraceback\nFailTest: 1 != 2\n\ntests.test_a.ATests.test_b",
    "[ERROR]\nKeyError\n\ntests.test_a.ATests.test_c",
)
_RULE = "=" * 79 + "\n"
_RED = f"""tests.test_a.ATests.test_b ... [FAILURE]

{_RULE}[SKIPPED]
no

tests.test_a.ATests.test_d
{_RULE}{_FAILURES[0]}
{_RULE}{_FAILURES[1]}
{"-" * 79}
Ran 6 tests in 0.1s

FAILED (failures=2, errors=1, successes=3)
"""
_SHARED = """
import os, pathlib
try:
    pathlib.Path(os.environ["AILERON_TESTS_TAKEN"], "first").touch(exist_ok=False)
    print("PASSED (successes=2)")
except FileExistsError:
    print("=" * 79, "[ERROR]", "test_b", "FAILED (errors=1, successes=1)", sep="\\n")
    raise SystemExit(3)
"""


class JudgeTests(SynchronousTestCase):
    """What trial says at its end is read as numbers, and a run that went wrong is never counted as clean."""

    def test_output(self) -> None:
        """The last verdict counts, and the failures are those trial shows; a run that died is one failure, its end."""
        self.assertIsNone(read_trial("Traceback (most recent call last):\n"))
        for output, status, tally in (
            (_GREEN, 0, Tally(13, 0, 1)),
            (_RED, 1, Tally(3, 3, 0, _FAILURES)),
            (_GREEN + _RED, 1, Tally(3, 3, 0, _FAILURES)),
            ("", 0, Tally(failed=1)),
            ("Killed", 1, Tally(failed=1, failures=("Killed",))),
            (_GREEN, 1, Tally(13, 1, 1, (_GREEN,))),
        ):
            self.assertEqual(judge(output, status), tally)


class RunTests(SynchronousTestCase):
    """The command's status and record tell the same story."""

    def run_script(self, script: str, jobs: int = 1) -> tuple[int, Tally]:
        """Run a Python script as if it were trial; what it prints must not count as this run's own."""
        directory = Path(self.mktemp())
        with redirect_stdout(StringIO()):
            status = run(directory / "made.json", [sys.executable, "-c", script], jobs)
        return status, read_records(directory)["made"]

    def test_run(self) -> None:
        """A run leaves its numbers and keeps its status; one without a single passed test fails."""
        for script, status, tally in (
            ("print('PASSED (successes=2)')", 0, Tally(2)),
            (f"print({_RED!r}); raise SystemExit(3)", 3, Tally(3, 3, 0, _FAILURES)),
            ("print('PASSED (skips=4)')", 1, Tally(skipped=4)),
        ):
            self.assertEqual(self.run_script(script), (status, tally))

    def test_side_by_side(self) -> None:
        """Processes that share the work are added up, each knows what the others took, and one that fails is seen."""
        failure = "[ERROR]\ntest_b\nFAILED (errors=1, successes=1)"
        self.assertEqual(self.run_script(_SHARED, 2), (3, Tally(3, 1, 0, (failure,))))


class SeedTests(SynchronousTestCase):
    """The seed of a run belongs to the sources."""

    def test_sources(self) -> None:
        """The same files give the same seed, and any change of one another."""
        seeds = []
        for text in ("a = 1\n", "a = 1\n", "a = 2\n"):
            root = Path(self.mktemp())
            (root / "tests").mkdir(parents=True)
            (root / "tests" / "test_a.py").write_text(text)
            seeds.append(seed_of_sources(root))
        self.assertEqual((seeds[0] == seeds[1], seeds[1] == seeds[2]), (True, False))


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

    def test_failures(self) -> None:
        """Each failure is shown again before the sums, without the middle of a long one."""
        long = "\n".join(("[ERROR]", *(f"line {number}" for number in range(50)), "tests.test_a.ATests.test_b"))
        _, lines = verdict({"a": Tally(1, 1, 0, ("[FAIL]\ntests.c",)), "b": Tally(0, 1, 0, (long,))}, {})
        self.assertEqual(lines[0], "[FAIL]\ntests.c")
        self.assertIn("line 49", lines[1])
        self.assertNotIn("line 30\n", lines[1])
        self.assertEqual(len(lines[1].splitlines()), 20)
        self.assertTrue(lines[1].endswith("tests.test_a.ATests.test_b"))

    def test_checks(self) -> None:
        """Tox's result file names what ran, and how; not what was skipped or not asked for."""
        skipped = {"success": True, "skipped": True}
        results = {"a": {"success": True, "skipped": False}, "b": {"success": False}, "c": skipped}
        found = {"testenvs": {**{name: {"result": each} for name, each in results.items()}, "d": {}}}
        self.assertEqual(checks(found), {"a": True, "b": False})
