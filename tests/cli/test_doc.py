"""What the pages tell people to type exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli._main import aileron
from tests.cli.test_main import commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "doc").rglob("*.md"))]
LISTING = re.compile(r"^```(?:console|sh|text)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(?:\$ )?(aileron .*)$", re.MULTILINE)
SPAN = re.compile(r"`(aileron(?: [^`]*)?)`")
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


def told(page: str) -> Iterator[str]:
    """The commands of the table in C{doc/cli.md}, alternatives written out."""
    table = page[page.index("## Commands") : page.index("## In scripts")]
    for cell in COMMANDS.findall(table):
        for span in re.findall(r"`([^`]+)`", cell):
            words = span.replace("\\|", "|").split()
            plain = [word for word in words if re.fullmatch(r"[a-z|]+", word)]
            group, names = (plain[0], plain[1]) if len(plain) > 1 else ("", plain[0])
            yield from (f"{group} {name}".strip() for name in names.split("|"))


class PagesTests(SynchronousTestCase):
    """The pages against the commands."""

    def test_lines(self) -> None:
        """Every command line of every page names a command, and only options that it has."""
        lines = [(page.name, line) for page in PAGES for line in typed(page.read_text("utf-8"))]
        self.assertGreater(len(lines), 40)
        self.assertEqual([(page, wrong) for page, line in lines if (wrong := fault(line))], [])

    def test_table(self) -> None:
        """The table of commands is complete, and has none that is not there."""
        page = (ROOT / "doc" / "cli.md").read_text("utf-8")
        there = {" ".join(path) for path in commands(aileron)}
        groups = {path.partition(" ")[0] for path in there if " " in path}
        self.assertEqual({command for command in told(page) if command != "open approval"} ^ (there - groups), set())

    def test_catches(self) -> None:
        """A command or an option that is not there is found."""
        self.assertIsNotNone(fault("aileron vault open"))
        self.assertIsNotNone(fault("aileron approval approve ID --force"))
        self.assertIsNone(fault("aileron launch opencode --whatever"))
