"""Each failure is a sentence on standard error and an exit code, never a traceback."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli._errors import CommandError, report
from aileron.client import AnswerNotUnderstood, DaemonFault, DaemonUnreachable
from aileron.errors import InvalidRequest, VaultLocked
from aileron.values import Fault


def told(error: BaseException) -> tuple[int, str]:
    """The exit code and what is printed."""
    err = io.StringIO()
    with redirect_stderr(err):
        return report(error), err.getvalue()


class ReportTests(SynchronousTestCase):
    def test_trouble(self) -> None:
        """What happened, and what to do."""
        self.assertEqual(told(CommandError("No.", "Do this.")), (1, "aileron: No.\n  Do this.\n"))

    def test_vault(self) -> None:
        """A vault that is not open says how to go on, by its state."""
        self.assertIn("aileron vault init", told(VaultLocked("x", {"state": "missing"}))[1])
        self.assertIn("aileron vault unlock", told(VaultLocked("x", {"state": "locked"}))[1])
        self.assertIn("aileron vault reset", told(VaultLocked("x", {"state": "lost"}))[1])

    def test_problems(self) -> None:
        """Every fault of the arguments is told."""
        problems = [{"pointer": "/args/a", "message": "is missing"}, {"pointer": "/args/b", "message": "too long"}]
        code, text = told(InvalidRequest("Wrong.", {"problems": problems}))
        self.assertEqual((code, text), (1, "aileron: Wrong.\n  /args/a: is missing\n  /args/b: too long\n"))

    def test_daemon_fault(self) -> None:
        """What the daemon says is told with what was kept; it cannot act on the terminal."""
        fault = Fault("outcome_unknown", "It may \x1b[2Jhave happened.")
        code, text = told(DaemonFault(fault.message, 500, fault, "R1"))
        self.assertEqual(code, 1)
        self.assertIn("It may ␛[2Jhave happened.", text)
        self.assertIn("aileron runs settle", text)
        self.assertIn("The run is kept: aileron runs show R1", text)

    def test_unreachable(self) -> None:
        """Whether a request may have arrived is told."""
        self.assertIn("Nothing was sent", told(DaemonUnreachable("Away."))[1])
        self.assertIn("may have arrived", told(DaemonUnreachable("Away.", sent=True))[1])
        self.assertEqual(told(AnswerNotUnderstood("Odd.", 200)), (1, "aileron: Odd.\n"))

    def test_os(self) -> None:
        """A file that cannot be used is named."""
        self.assertEqual(told(FileNotFoundError(2, "No such file", "/x")), (1, "aileron: No such file: /x\n"))

    def test_usage(self) -> None:
        """A usage error has a code of its own."""
        self.assertEqual(told(click.UsageError("Want more."))[0], 2)

    def test_interrupted(self) -> None:
        """Ctrl-C says nothing."""
        self.assertEqual(told(KeyboardInterrupt()), (130, ""))
        self.assertEqual(told(click.Abort()), (130, ""))

    def test_own_fault(self) -> None:
        """A fault of ours names its place but not what it held."""
        try:
            raise RuntimeError("canary")
        except RuntimeError as error:
            code, text = told(error)
        self.assertEqual(code, 1)
        self.assertIn("RuntimeError at test_errors.py:", text)
        self.assertNotIn("canary", text)
