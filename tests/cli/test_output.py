"""Nothing that a foreign value holds acts on the terminal, hides, or passes for a line of ours."""

from __future__ import annotations

import io
import json
import re
import threading
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime, timedelta
from threading import Event

import click
from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, timestamp
from aileron.base.text import visible
from aileron.cli import _tables
from aileron.cli import output as _output
from aileron.cli.errors import CommandError, report
from tests.extent import examples

WILD = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b\x07\r\n\t\x7f\x9b\u202e\u200b\u2028[]{}%│")), max_size=40
)
WILD_JSON: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | WILD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WILD, inner, max_size=3),
    max_leaves=5,
)


def printed(call: Callable[[], object]) -> str:
    """What a call prints, on both streams."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        call()
    return out.getvalue()


class ForeignTextTests(SynchronousTestCase):
    def harmless(self, text: str) -> None:
        """Assert that only line feeds are left of what acts or hides."""
        left = [c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
        self.assertEqual(left, [])

    @settings(deadline=None, max_examples=examples(150))
    @given(WILD)
    def test_one_line(self, text: str) -> None:
        """A value in a line of ours stays in that line, and its braces mean nothing."""
        for say in (_output.say, _output.note, _output.complain, _output.heading):
            shown = printed(lambda say=say: say("it is {value}!", value=text))  # type: ignore[misc]
            self.harmless(shown)
            self.assertEqual(shown.count("\n"), 1)

    @settings(deadline=None, max_examples=examples(150))
    @given(WILD)
    def test_margin(self, text: str) -> None:
        """Each line of a text of many lines stands behind a margin."""
        shown = printed(lambda: _output.block(text, "  "))
        self.harmless(shown)
        self.assertEqual([line for line in shown.split("\n")[:-1] if not line.startswith("  │ ")], [])

    @settings(deadline=None, max_examples=examples(150))
    @given(st.dictionaries(WILD, WILD_JSON, max_size=3))
    def test_values(self, given_values: dict[str, JSON]) -> None:
        """Labels and values, whatever they are, begin no line of their own."""
        shown = printed(lambda: _output.values(given_values, "  "))
        self.harmless(shown)
        self.assertEqual([line for line in shown.split("\n")[:-1] if not line.startswith("  ")], [])

    @settings(deadline=None, max_examples=examples(100))
    @given(st.lists(st.tuples(WILD, WILD), max_size=4))
    def test_table(self, rows: list[tuple[str, str]]) -> None:
        """A table has a line for its titles and one a row."""
        shown = printed(lambda: _output.table(("A", "B"), rows))
        self.harmless(shown)
        self.assertEqual(shown.count("\n"), 1 + len(rows))

    @settings(deadline=None, max_examples=examples(100))
    @given(WILD_JSON)
    @example("\ud800\udc00")
    def test_json(self, value: JSON) -> None:
        """JSON for programs is printable ASCII and says the same value."""
        shown = printed(lambda: _output.say_json(value))
        self.assertTrue(shown.isascii())
        self.harmless(shown)
        same = json.loads(json.dumps(value))  # in which two surrogates have become the character that they are
        self.assertEqual(json.loads(shown), same)


@frozen
class Clock:
    """What a command knows of the time."""

    wall: Callable[[], float]


class TimesTests(SynchronousTestCase):
    """Times as people read them."""

    NOW = datetime(2026, 3, 10, 12, 0).astimezone()

    def told(self, ago: timedelta, *, exact: bool = False, relative: bool = True) -> str:
        """What is printed of a time so long ago, in a command that was given C{--utc} or not."""
        context = click.Context(click.Command("x"), obj=Clock(self.NOW.timestamp))
        _output.keep_exact(context, click.Option(["--utc"]), exact)
        with context:
            return _output.when(timestamp(self.NOW - ago), relative=relative)

    def test_relative(self) -> None:
        """A time of the last hour is relative, one near today names the day, any other the date, all in local time."""
        for ago, told in (
            ({"seconds": 59}, "just now"),
            ({"minutes": 2, "seconds": 30}, "2 min ago"),
            ({"hours": 1}, "today 11:00"),
            ({"hours": -1}, "today 13:00"),
            ({"hours": 13}, "yesterday 23:00"),
            ({"hours": -12}, "tomorrow 00:00"),
            ({"days": 4}, "2026-03-06 12:00"),
        ):
            self.assertEqual(self.told(timedelta(**ago)), told)
        self.assertEqual(self.told(timedelta(minutes=2), relative=False), "today 11:58")

    def test_exact(self) -> None:
        """With --utc the time is printed as it is stored; no time is a dash, and what is no time stays as it is."""
        stored = timestamp(self.NOW - timedelta(minutes=2))
        self.assertEqual(self.told(timedelta(minutes=2), exact=True), stored)
        self.assertEqual((_output.when(None), _output.when("soon")), ("-", "soon"))


class LayoutTests(SynchronousTestCase):
    def test_nothing(self) -> None:
        """Nothing is printed as a dash: in a line, beside a label and in a table."""
        self.assertEqual(printed(lambda: _output.say("exit {code}", code=None)), "exit -\n")
        self.assertEqual(printed(lambda: _output.value("exit", None)), "exit  -\n")
        self.assertEqual(printed(lambda: _output.table(("EXIT",), [(None,)])), "EXIT\n-\n")

    def test_columns(self) -> None:
        """Columns stay below each other; a value of one line stands beside its label, one of many below it."""
        shown = printed(lambda: _output.table(("NAME", "N"), [("日本", 1), ("ab", None)])).splitlines()
        self.assertEqual(shown, ["NAME  N", "日本  1", "ab    -"])
        self.assertEqual(printed(lambda: _output.value("a", "b", width=3)), "a    b\n")
        self.assertEqual(printed(lambda: _output.value("a", "b\nc", multiline=True)), "a\n  │ b\n  │ c\n")
        self.assertEqual(printed(lambda: _output.value("a", {"b": 1})), 'a\n  │ {\n  │   "b": 1\n  │ }\n')


class ErrorOutputTests(SynchronousTestCase):
    """What another program wrote, below an error."""

    def test_margin(self) -> None:
        """Each line of it stands behind a margin, also where it goes on from the line before."""
        wrote = [
            "npm error code EACCES",
            "npm error " + "the cache folder contains root-owned files " * 5,
            "x" * 200,
            "a\nb",
        ]
        context = click.Context(click.Command("x"))
        _output.set_width(context, click.Option(["--width"]), 80)
        with context:
            shown = printed(lambda: report(CommandError("npm failed. Nothing was moved.", "Try again: npm", wrote)))
        first, *lines, hint = shown.splitlines()
        self.assertEqual((first, hint.strip()), ("aileron: npm failed. Nothing was moved.", "Try again: npm"))
        self.assertEqual([line for line in lines if not line.startswith(("  \u2502 ", "  \u2506 "))], [])
        self.assertEqual(sum(line.startswith("  \u2502 ") for line in lines), 5)
        self.assertLessEqual(max(map(len, lines)), 80)


class TerminalTableTests(SynchronousTestCase):
    """Tables where a person reads them."""

    def shown(
        self,
        *rows: tuple[str, ...],
        width: int = 60,
        titles: tuple[str, ...] = ("ID", "STATE", "NOTE"),
        **environment: str,
    ) -> str:
        """What a terminal of that width gets."""
        file = io.StringIO()
        console = Console(
            file=file,
            width=width,
            force_terminal=True,
            color_system="standard",
            _environ={"TERM": "xterm", **environment},
        )
        _tables.print_table(titles, rows, console)
        return file.getvalue()

    def test_fits(self) -> None:
        """No line is wider than the terminal, no word is lost, and what is to be copied stays in one piece."""
        note = " ".join(f"word{number}" for number in range(20))
        plain = click.unstyle(self.shown(("01J0000000000000000000RUN1", "failed", note)))
        self.assertLessEqual(max(map(len, plain.splitlines())), 60)
        self.assertIn("01J0000000000000000000RUN1", plain)
        self.assertEqual([word for word in note.split() if word not in plain], [])

    def test_narrow(self) -> None:
        """Where columns would be too narrow to read, each row is a block, with a line for each cell."""
        rows = [("01J0000000000000000000RUN1", "pending_approval", "a note"), ("2", "failed", "b note")]
        self.assertIn("pending_approval  a note", click.unstyle(self.shown(*rows, width=54)))
        plain = [line.rstrip() for line in click.unstyle(self.shown(*rows, width=50)).splitlines()]
        self.assertEqual(
            plain[:4], ["ID     01J0000000000000000000RUN1", "STATE  pending_approval", "NOTE   a note", ""]
        )
        self.assertEqual(plain[4:], ["ID     2", "STATE  failed", "NOTE   b note"])
        self.assertIn("\x1b[31mfailed", self.shown(*rows, width=50))
        long = [("01J0000000000000000000RUN1", "failed", "0123456789 " * 9)]
        self.assertIn("failed  0123456789\n", click.unstyle(self.shown(*long, width=46)))

    def test_no_title(self) -> None:
        """A column may have no title, as that of an action's arguments which tells whether they are required."""
        for width, expected in (
            (60, "NAME            WHAT\ntext  required  a"),
            (14, "NAME  text\n      required\nWHAT  a"),
        ):
            file = io.StringIO()
            _tables.print_table(("NAME", "", "WHAT"), [("text", "required", "a")], Console(file=file, width=width))
            self.assertEqual("\n".join(line.rstrip() for line in file.getvalue().splitlines()), expected)

    def test_copied(self) -> None:
        """What is copied into commands is in one piece at 80 columns, and where it is wider than the terminal."""
        run, host, action = (
            "01J0000000000000000000RUN1",
            "artifacts.eu-west-1.example.com:8443",
            "publish-release-notes",
        )
        for titles, row in (
            (("ID", "HOST", "STATE", "PROJECT"), (run, host, "pending", "/home/you/a/project/" * 4)),
            (("NO", "TIME", "EVENT", "ACTION", "RUN"), ("9", "just now", "approval.requested", action, run)),
            (("NAME", "CONNECTOR", "TOOL", "OPERATION", "NOTE"), (host, host, action, action, "-")),
        ):
            for width in (80, 30):
                plain = click.unstyle(self.shown(row, width=width, titles=titles))
                whole = {run, host, action} & set(row)
                self.assertEqual([cell for cell in whole if cell not in plain], [], plain)

    def test_names_in_commands(self) -> None:
        """A package's name, a path or an address is never broken, wherever it stands; prose gives way to it."""
        package, grant = "@modelcontextprotocol/server-sequential-thinking", "session 01J0000000000000000000RUN1"
        for titles, row in (
            (
                ("NO", "NAME", "TRANSPORT", "COMMAND OR URL", "SECRETS"),
                ("1", "thinking", "stdio", f"npx -y {package}", "-"),
            ),
            (
                ("ID", "ACTION", "STATE", "LEFT", "UNTIL", "FOR"),
                ("1" * 26, "ship-update", "active", "1 of 1", "today 17:31", grant),
            ),
            (
                ("NAME", "CONNECTOR", "HOSTS", "NOTE"),
                ("a", "b", "artifacts.eu-west-1.example.com:8443, b:443", "word " * 20),
            ),
        ):
            for width in (80, 40):
                plain = click.unstyle(self.shown(row, width=width, titles=titles))
                words = " ".join(row[:-1] if "NOTE" in titles else row).split()
                self.assertEqual([word for word in words if word not in plain], [], plain)

    def test_words(self) -> None:
        """A column is never so narrow that a word of it is broken."""
        rows = [("1", "approval.requested", "agent " * 9, "ship-update", "01J0000000000000000000RUN1")]
        titles = ("NO", "EVENT", "ACTOR", "ACTION", "RUN")
        self.assertIn("approval.requested", click.unstyle(self.shown(*rows, width=76, titles=titles)))

    def test_copied_beside_words(self) -> None:
        """A column that is copied keeps its width where others have long words; no line is wider than the terminal."""
        titles = ("NO", "TIME", "EVENT", "ACTOR", "ABOUT", "RUN")
        rows = [
            ("26", "26 min ago", "execution.succeeded", "service aileron", "local://demo/team-chat", "HB4F7R"),
            ("7", "just now", "trust.given", "you", "x", "-"),
        ]
        for width in (80, 84, 90, 120):
            plain = click.unstyle(self.shown(*rows, width=width, titles=titles))
            self.assertIn("HB4F7R", plain, width)
            self.assertLessEqual(max(len(line.rstrip()) for line in plain.splitlines()), width)

    def test_empty_cells(self) -> None:
        """A block has no line for a cell with nothing in it."""
        plain = click.unstyle(self.shown(("01J0000000000000000000RUN1", "pending_approval", "-"), width=40))
        self.assertNotIn("NOTE", plain)

    def test_colours(self) -> None:
        """A state has its colour, the same word elsewhere has none, and NO_COLOR is obeyed; markup means nothing."""
        shown = self.shown(("1", "failed", "failed"), ("2", "completed", "[red]x[/red]"))
        self.assertEqual((shown.count("\x1b[31m"), shown.count("\x1b[32m")), (1, 1))
        self.assertIn("[red]x[/red]", shown)
        self.assertNotIn("\x1b[3", self.shown(("1", "failed", ""), NO_COLOR="1"))


class ProgressTests(SynchronousTestCase):
    """The line that is shown while something takes its time."""

    def shown(self, doing: str, total: int = 0, soon: float = 0.0, **environment: str) -> str:
        """What a terminal gets until half of it is done; nothing is waited for where that is longer than soon."""
        file, asked = io.StringIO(), Event()

        def done() -> int:
            asked.set()
            return total // 2

        console = Console(file=file, width=60, force_terminal=True, _environ={"TERM": "xterm", **environment})
        with _output.progress(doing, total, done, console=console, soon=soon):
            asked.wait(0.0 if soon else 5.0 if environment.get("TERM") != "dumb" else 0.2)
        return file.getvalue()

    def test_shown(self) -> None:
        """It says what goes on, as it is, and how much is done where that is known; at the end the line is gone."""
        shown = self.shown("Reading [red]x[/red]\x1b", 8)
        self.assertIn("Reading [red]x[/red]" + visible("\x1b"), shown)
        self.assertIn("50%", shown)
        self.assertTrue(shown.endswith("\x1b[2K"), shown)
        self.assertNotIn("%", self.shown("Waiting"))

    def test_colours(self) -> None:
        """NO_COLOR is obeyed."""
        coloured = re.compile(r"\x1b\[[0-9;]*3[0-9]").search
        self.assertIsNotNone(coloured(self.shown("Reading", 8)))
        self.assertIsNone(coloured(self.shown("Reading", 8, NO_COLOR="1")))

    def test_short(self) -> None:
        """What is over soon shows nothing, and ends without waiting for the moment when it would."""
        self.assertEqual(self.shown("Reading", 8, soon=60.0), "")

    def test_programs(self) -> None:
        """With --json, on a terminal that cannot move its cursor, and in a pipe, nothing is shown."""
        command = click.Command("x", params=[click.Option(["--json", "as_json"], is_flag=True)])
        for arguments, quiet in (([], False), (["--json"], True)):
            with command.make_context("x", arguments):
                self.assertEqual(self.shown("Reading", 8, 0.01 if quiet else 0.0) == "", quiet)
        self.assertEqual(self.shown("Reading", TERM="dumb"), "")
        with redirect_stderr(io.StringIO()) as heard, _output.progress("Reading", soon=0.0):
            self.assertEqual(threading.active_count(), self.threads)
        self.assertEqual(heard.getvalue(), "")

    def test_failure(self) -> None:
        """What goes wrong meanwhile is raised, and the line is gone."""

        def fail() -> None:
            with _output.progress("Reading", soon=9.0):
                self.assertEqual(threading.active_count(), self.threads + 1)
                raise ValueError

        with redirect_stderr(_Terminal()) as heard:
            self.assertRaises(ValueError, fail)
        self.assertEqual((heard.getvalue(), threading.active_count()), ("", self.threads))

    def setUp(self) -> None:
        """Count what runs already."""
        self.threads = threading.active_count()


class _Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True
