"""The root: every command explains itself, a light one loads little, each failure is a sentence and a code."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron import __version__
from aileron.cli._main import aileron
from aileron.cli._tree import COMMANDS, FRONT
from aileron.cli.errors import CommandError, report
from aileron.client import AnswerNotUnderstood, DaemonFault, DaemonUnreachable
from aileron.model.errors import InvalidRequest
from aileron.model.faults import Fault
from tests.cli.daemon import CommandCase

_LIGHT = """
import sys
from aileron.cli._main import run
from aileron.cli.context import real_context
code = run(["version"], real_context())
heavy = {"klein", "mcp", "cryptography", "treq", "twisted"} & set(sys.modules)
sys.exit(f"loads {heavy}" if heavy else code)
"""


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is None or found.hidden:
            continue
        yield (*path, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))


class HelpTests(CommandCase):
    def test_help(self) -> None:
        """Every command has help that begins with how it is called."""
        paths = list(commands(aileron))
        self.assertGreater(len(paths), 40)
        for path in paths:
            code, out, err = self.command(*path, "--help")
            self.assertEqual((code, err), (0, ""), path)
            self.assertIn("Usage: aileron " + " ".join(path), out)

    def test_parts(self) -> None:
        """The help has five parts, with ten commands in front; with --all it has every command, in either order."""
        parts = ["Start:", "Decide:", "Services:", "Inspect:", "Maintain:"]
        front = self.command("--help")[1]
        self.assertEqual([line for line in front.splitlines() if line in parts], parts)
        self.assertEqual(set(re.findall(r"^  ([a-z]+)  ", front, re.MULTILINE)), FRONT)
        self.assertEqual(len(FRONT), 10)
        self.assertIn("All commands: aileron --help --all", front)
        for arguments in (("--help", "--all"), ("--all", "--help"), ("-h", "--all")):
            everything = self.command(*arguments)[1]
            self.assertEqual(set(re.findall(r"^  ([a-z][a-z-]*)  ", everything, re.MULTILINE)), {*COMMANDS}, arguments)

    def test_usage(self) -> None:
        """An unknown command or option is a usage error on standard error; a home that cannot be told is an error."""
        for arguments in (("nope",), ("status", "--nope"), ("runs", "save")):
            code, out, err = self.command(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("--help", err)
        code, out, err = self.command("runs")
        self.assertIn("\nCommands:\n", out + err)
        self.environ.clear()
        self.assertEqual(self.command("status")[0], 1)

    def test_version(self) -> None:
        """The version is printed, for people and for programs."""
        self.assertEqual(self.command("version")[:2], (0, f"aileron {__version__}\n"))
        self.assertEqual(self.command("--version")[:2], (0, f"aileron {__version__}\n"))
        self.assertIn(__version__, self.command("version", "--json")[1])


_INTERRUPTED = """
import signal
from aileron.cli.drive import drive, interruptible

async def work(connections):
    signal.raise_signal(signal.SIGINT)
    with interruptible():
        print("asked")

try:
    drive(work)
except KeyboardInterrupt:
    print("interrupted")
"""


class InterruptTests(SynchronousTestCase):
    def test_before_a_question(self) -> None:
        """Ctrl-C that comes just before a question is not kept until the question is answered."""
        found = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, check=False)
        self.assertEqual((found.stdout, found.stderr), ("interrupted\n", ""))


class WeightTests(SynchronousTestCase):
    def test_light(self) -> None:
        """Printing the version loads no daemon, no client, no vault."""
        found = subprocess.run([sys.executable, "-c", _LIGHT], capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, f"aileron {__version__}\n", ""))


def told(error: BaseException) -> tuple[int, str]:
    """The exit code and what is printed."""
    err = io.StringIO()
    with redirect_stderr(err):
        return report(error), err.getvalue()


class ReportTests(SynchronousTestCase):
    def test_trouble(self) -> None:
        """What happened and what to do is told, with every fault of the arguments; each kind has its exit code."""
        self.assertEqual(told(CommandError("No.", "Do this.")), (1, "aileron: No.\n  Do this.\n"))
        problems = [{"pointer": "/args/a", "message": "is missing"}, {"pointer": "/args/b", "message": "too long"}]
        code, text = told(InvalidRequest("Wrong.", {"problems": problems}))
        self.assertEqual((code, text), (1, "aileron: Wrong.\n  /args/a: is missing\n  /args/b: too long\n"))
        self.assertEqual(told(FileNotFoundError(2, "No such file", "/x")), (1, "aileron: No such file: /x\n"))
        self.assertEqual(told(click.UsageError("Want more."))[0], 2)
        self.assertEqual(told(KeyboardInterrupt()), (130, ""))
        self.assertEqual(told(click.Abort()), (130, ""))

    def test_daemon_fault(self) -> None:
        """What the daemon says is told with what was kept, or whether a request may have arrived; none of it acts."""
        fault = Fault("outcome_unknown", "It may \x1b[2Jhave happened.")
        code, text = told(DaemonFault(fault.message, 500, fault, "R1"))
        self.assertEqual(code, 1)
        self.assertIn("It may ␛[2Jhave happened.", text)
        self.assertIn("aileron run settle", text)
        self.assertIn("See the run:\n    aileron run show R1\n", text)
        self.assertIn("Nothing was sent", told(DaemonUnreachable("Away."))[1])
        self.assertIn("may have been received", told(DaemonUnreachable("Away.", sent=True))[1])
        self.assertEqual(told(AnswerNotUnderstood("Odd.", 200)), (1, "aileron: Odd.\n"))

    def test_own_fault(self) -> None:
        """A fault of ours names its place but not what it held."""
        try:
            raise RuntimeError("canary")
        except RuntimeError as error:
            code, text = told(error)
        self.assertEqual(code, 1)
        self.assertIn("RuntimeError at test_main.py:", text)
        self.assertNotIn("canary", text)
