"""No text but a result's can be taken for success, and none wastes a model's attention: every outcome, in one table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonAnswer, DaemonFault, DaemonUnreachable
from aileron.errors import STATUS
from aileron.mcp._texts import ToolResult, render_error, render_run, render_status
from aileron.values import Fault

LONGEST = 330
"""Characters of ours, without what the daemon, the service or the user said."""

SUCCESS = re.compile(
    r"\b(done|success\w*|succeeded|completed?|finished|okay?|delivered|posted|worked)\b",
    re.IGNORECASE,
)

STATUSES = ("pending_approval", "awaiting_vault", "running", "denied", "expired", "cancelled", "failed", "unknown")


def texts() -> Iterator[tuple[str, ToolResult]]:
    """Everything that is no result, by what it is."""
    for status in STATUSES:
        yield f"status {status}", render_status({"status": status})
        yield f"run {status}", render_run(DaemonAnswer(202, {"status": status, "run_id": "R", "approval_id": "R"}))
    yield "approved, later", render_status({"status": "running", "begins_at": "2026-03-01T08:00:00Z"})
    again = {"class": "outcome_unknown", "details": {"run_again": "R2"}}
    yield "again", render_status({"status": "unknown", "failure": again})
    for kind in sorted(STATUS):
        for cut_off in (False, True):
            error = DaemonFault("", 400, Fault(kind, ""), "R", None)
            yield f"fault {kind}, cut off: {cut_off}", render_error(error, cut_off=cut_off)
    for sent in (False, True):
        yield f"unreachable, sent: {sent}", render_error(DaemonUnreachable("", sent=sent))


class MisreadingTests(SynchronousTestCase):
    """The table."""

    def test_nothing_sounds_like_success(self) -> None:
        """What waits, was refused, failed or is in doubt has no word of success in it."""
        for what, result in texts():
            self.assertIsNone(SUCCESS.search(result.text), f"{what}: {result.text}")

    def test_brief(self) -> None:
        """Each is short."""
        for what, result in texts():
            self.assertTrue(0 < len(result.text) <= LONGEST, f"{what}: {len(result.text)}")

    def test_errors_say_so(self) -> None:
        """A refusal is an error; what waits is none, so that nobody tries it again."""
        for what, result in texts():
            self.assertEqual(result.is_error, what.startswith(("fault", "unreachable")), what)

    def test_whether_it_may_be_repeated(self) -> None:
        """What may have happened says not to repeat it."""
        for what, result in texts():
            if "unknown" in what and what.startswith(("status", "fault outcome")):
                self.assertIn("o not repeat it", result.text)

    def test_a_result_sounds_like_one(self) -> None:
        """Only what is completed says so."""
        self.assertRegex(render_status({"status": "completed", "result": {"output": None}}).text, SUCCESS)
        self.assertRegex(render_run(DaemonAnswer(200, {"result": {"output": None}})).text, SUCCESS)
