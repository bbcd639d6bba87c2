"""The root: every command explains itself, and a light one loads little."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron import __version__
from aileron.cli._main import aileron
from tests.cli.daemon import CommandCase

_LIGHT = """
import sys
from aileron.cli._main import run
from aileron.cli._context import real_context
code = run(["version"], real_context())
heavy = {"klein", "mcp", "cryptography", "treq", "twisted"} & set(sys.modules)
sys.exit(f"loads {heavy}" if heavy else code)
"""


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
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

    def test_usage(self) -> None:
        """An unknown command or option is a usage error on standard error."""
        for arguments in (("nope",), ("status", "--nope"), ("approval", "show")):
            code, out, err = self.command(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("--help", err)

    def test_version(self) -> None:
        """The version is printed, for people and for programs."""
        self.assertEqual(self.command("version")[:2], (0, f"aileron {__version__}\n"))
        self.assertIn(__version__, self.command("version", "--json")[1])

    def test_home(self) -> None:
        """A home that cannot be told is an error."""
        self.environ.clear()
        self.assertEqual(self.command("status")[0], 1)


class WeightTests(SynchronousTestCase):
    def test_light(self) -> None:
        """Printing the version loads no daemon, no client, no vault."""
        found = subprocess.run([sys.executable, "-c", _LIGHT], capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, f"aileron {__version__}\n", ""))
