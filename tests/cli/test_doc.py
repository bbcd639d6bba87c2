"""What the pages tell people to type exists."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli._main import aileron
from aileron.cli._tree import OLD_NAMES, OLD_WITHIN
from tests.cli.test_main import commands
from tests.functional import test_quickstart

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "doc").rglob("*.md"))]
LISTING = re.compile(r"^ *```(?:console|sh|text)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)  # in a list it is indented
TYPED = re.compile(r"^ *(?:\$ )?(aileron .*)$", re.MULTILINE)
SPAN = re.compile(r"`(aileron(?: [^`]*)?)`")
NAMED = re.compile(r"\b(aileron (?:[a-z]+(?:-[a-z]+)*|\{\})(?: [a-z]+(?:-[a-z]+)*)?)")
NO_COMMANDS = {  # what is said of Aileron, labels of keys, and a command with a sentence behind it
    *("aileron package", "aileron cannot start", "aileron version", "aileron {} serves", "aileron {}"),
    *("aileron control id", "aileron control v", "aileron vault entries", "aileron vault file", "aileron sealed parts"),
    *(
        "aileron approval in",
        "aileron {} is",
        "aileron prompt",
    ),  # the last: a package that pipx adds to that of this name
    *("aileron {} list", "aileron {} add"),  # said only of groups that have it
}
COMMANDS = re.compile(r"^\| (`.*`) \| ", re.MULTILINE)


def typed(page: str) -> Iterator[str]:
    """The command lines of a page: of its listings, and between backquotes."""
    for listing in LISTING.findall(page):
        yield from TYPED.findall(listing)
    yield from SPAN.findall(LISTING.sub("", page))


def fault(line: str) -> str | None:
    """What is wrong with a command line, if anything is."""
    words = shlex.split(line)[1:]
    context = click.Context(aileron)
    command: click.Command = aileron
    while isinstance(command, click.Group) and words and words[0].islower() and words[0][0] != "-":
        found = command.get_command(context, words.pop(0))
        if found is None:
            return f"there is no command: {line}"
        command = found
    if command.context_settings.get("ignore_unknown_options"):  # the words are the agent's
        return None
    known = {"--help", *(each for parameter in command.params for each in parameter.opts)}
    unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in known]
    return f"there is no option {unknown[0]}: {line}" if unknown else None


def is_group(words: list[str]) -> bool:
    """Whether these words name a group of commands."""
    command: click.Command | None = aileron
    for word in words:
        command = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
    return isinstance(command, click.Group)


def told(page: str) -> Iterator[str]:
    """The commands of the table in C{doc/cli.md}, alternatives written out."""
    table = page[page.index("## Commands") : page.index("### Old names")]
    for cell in COMMANDS.findall(table):
        for span in re.findall(r"`([^`]+)`", cell):
            words = span.replace("\\|", "|").split()
            plain = [word for word in words if re.fullmatch(r"[a-z|-]+", word)]
            depth = next((size for size in range(len(plain)) if not is_group(plain[: size + 1])), len(plain) - 1)
            yield from (" ".join((*plain[:depth], name)) for name in plain[depth].split("|"))


def said(source: str) -> Iterator[str]:
    """The commands that texts of a module name, as far as the text itself says them; ``{}`` for what is filled in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            text = "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = re.sub(r"\{\w*\}", "{}", node.value)
        else:
            continue
        yield from (each for each in NAMED.findall(text) if each not in NO_COMMANDS)


def is_there(named: str) -> bool:
    """Whether there is such a command; of what is filled in, for each of the kinds."""
    kinds = ("action", "connector", "config") if "{}" in named else ("",)
    return all(fault(named.replace("{}", kind)) is None for kind in kinds)


class MessagesTests(SynchronousTestCase):
    """What the program itself tells people to type."""

    def test_messages(self) -> None:
        """Every command that a message or a page of the browser names is there."""
        sources = sorted((ROOT / "aileron").rglob("*.py"))
        named = [(path.name, each) for path in sources for each in said(path.read_text("utf-8"))]
        self.assertGreater(len(named), 90)
        self.assertEqual([(name, each) for name, each in named if not is_there(each)], [])
        shipped = sorted((ROOT / "aileron" / "web").rglob("*.*ml"))
        code = re.compile(r"<code>(aileron [^<]*)</code>")
        shown = [each for path in shipped for each in code.findall(path.read_text("utf-8"))]
        self.assertGreater(len(shown), 3)
        self.assertEqual([each for each in shown if fault(each)], [])


def is_old(line: str) -> bool:
    """Whether a command line uses a name of an earlier version."""
    words = line.split()[1:]
    return (bool(words) and words[0] in OLD_NAMES) or " ".join(words[:2]) in OLD_WITHIN


class OldNamesTests(SynchronousTestCase):
    """Commands by the names of earlier versions."""

    def find(self, path: str) -> click.Command:
        """The command of that name, which is there."""
        command: click.Command | None = aileron
        for word in path.split():
            assert isinstance(command, click.Group), path
            command = command.get_command(click.Context(command), word)
        assert command is not None, path
        return command

    def test_same(self) -> None:
        """An old name is the same command as the new one, and no help lists it."""
        for old, new in {**{name: each.now for name, each in OLD_NAMES.items()}, **OLD_WITHIN}.items():
            if old in ("connect", "daemon status"):  # parts of setup and status, whose answers they keep
                self.find(old)
                continue
            self.assertIs(self.find(old).callback, self.find(new).callback, old)
        listed = {" ".join(path) for path in commands(aileron)}
        self.assertEqual(listed & {*OLD_NAMES, *OLD_WITHIN}, set())

    def test_table(self) -> None:
        """The page lists every old name with the new one."""
        page = (ROOT / "doc" / "cli.md").read_text("utf-8")
        table = page[page.index("### Old names") : page.index("## Trust")]
        told = dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", table, re.MULTILINE))
        self.assertEqual(told, {**{name: each.now for name, each in OLD_NAMES.items()}, **OLD_WITHIN})

    def test_not_told(self) -> None:
        """No message and no page has anybody type an old name."""
        sources = sorted((ROOT / "aileron").rglob("*.py"))
        named = [(path.name, each) for path in sources for each in said(path.read_text("utf-8"))]
        lines = [(page.name, line) for page in PAGES for line in typed(page.read_text("utf-8"))]
        self.assertEqual([(name, each) for name, each in (*named, *lines) if is_old(each)], [])


class PagesTests(SynchronousTestCase):
    """The pages against the commands."""

    def test_lines(self) -> None:
        """Every command line of every page names a command, and only options that it has."""
        lines = [(page.name, line) for page in PAGES for line in typed(page.read_text("utf-8"))]
        self.assertGreater(len(lines), 40)
        self.assertEqual([(page, wrong) for page, line in lines if (wrong := fault(line))], [])

    def test_quickstarts(self) -> None:
        """The quickstarts have a reader type what L{tests.functional.test_quickstart} plays, and show what it shows."""
        for page in (ROOT / "doc").glob("quickstart-*.md"):
            agent = page.stem.removeprefix("quickstart-")
            lines = [
                line.strip()
                for listing in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
                for line in listing.splitlines()
                if line.strip()
            ]
            self.assertEqual(
                lines, ["pipx install .", *(each.format(agent=agent) for each in test_quickstart.COMMANDS)], page.name
            )
            (output,) = re.findall(r"```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
            self.assertEqual([each for each in test_quickstart.SHOWN if each not in output], [], page.name)

    def test_table(self) -> None:
        """The table of commands is complete, and has none that is not there."""
        page = (ROOT / "doc" / "cli.md").read_text("utf-8")
        there = {" ".join(path) for path in commands(aileron)}
        groups = {path.rpartition(" ")[0] for path in there if " " in path} - {
            "gateway"
        }  # which shows something itself
        self.assertEqual({command for command in told(page) if command != "open approval"} ^ (there - groups), set())
