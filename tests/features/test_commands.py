"""The commands of features: their order in the help, their names of earlier versions, and what says that one is off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

import aileron as aileron_package
from aileron.cli._main import aileron
from aileron.cli._tree import PARTS
from aileron.features import FeatureSet
from aileron.home.paths import prepare
from aileron.home.private_files import atomic_write
from tests.cli.daemon import CommandCase

ORDER = {
    "Start": "demo setup launch import mcp",
    "Decide": "open watch approve deny approval passkey grant cap pause resume network ask phone people oidc",
    "Services": "action connector credential package own-tools config notification",
    "Inspect": "status run session audit gateway profile log",
    "Maintain": "doctor vault daemon backup store upgrade operator approver completion version",
}


class OrderTests(SynchronousTestCase):
    """The order of the help."""

    def test_order(self) -> None:
        """Commands of features stand among those of the core, where their ranks put them."""
        self.assertEqual({title: " ".join(part) for title, part in PARTS.items()}, ORDER)


class OffCommandsTests(CommandCase):
    """Commands of features that config.yaml has off."""

    def switch_off(self, *names: str) -> None:
        """Have these features off."""
        prepare(self.home)
        switches = ", ".join(f"{name}: off" for name in names)
        atomic_write(self.home.config, f"features: {{{switches}}}\n".encode())

    def test_each(self) -> None:
        """Each command of a feature that is off, by each of its names, says so and does nothing."""
        for feature in FeatureSet().known:
            self.switch_off(feature.name)
            for name, command in feature.commands().items():
                for called in (name, *command.old):
                    code, out, err = self.command(*called.split())
                    self.assertEqual((code, out), (1, ""), called)
                    told = rf"aileron: The command aileron .* is off: config\.yaml has the feature {feature.name} off\."
                    self.assertTrue(re.fullmatch(told, err.splitlines()[0]), (called, err))

    def test_neighbours(self) -> None:
        """Other commands of a group, of which a feature has one, are not off."""
        self.switch_off("service", "packages")
        for called in (("daemon", "stop"), ("action", "list"), ("connector", "list")):
            self.assertNotIn("is off", self.command(*called)[2])

    def test_suggested(self) -> None:
        """A command of a feature that is off is not suggested as the next step."""
        self.switch_off("demo")
        self.assertIn("\nNext: aileron setup\n", self.command()[1])
        self.switch_off("launch")
        self.assertIn("\nNext: aileron demo, or aileron setup\n", self.command()[1])
        self.serve()
        ready = {"vault_state": "unlocked", "counts": {"actions": 1}, "uptime_seconds": 61}
        self.site.answer("GET", "/v1/status", ready)
        self.assertIn("aileron launch AGENT", self.command()[1])


class WithinTests(SynchronousTestCase):
    """Commands of features within groups of the core."""

    def find(self, *path: str) -> click.Command | None:
        """Return the command of that name, or None if there is none."""
        found: click.Command | None = aileron
        for word in path:
            assert isinstance(found, click.Group), path
            found = found.get_command(click.Context(found), word)
        return found

    def test_within(self) -> None:
        """A group of the core has a feature's commands; those of earlier versions are hidden."""
        for path, hidden in ((("daemon", "install"), False), (("action", "install"), True), (("sync",), False)):
            found = self.find(*path)
            assert found is not None
            self.assertEqual(found.hidden, hidden, path)
        self.assertIsNone(self.find("action", "sync"))


_WROTE_FILE = {("moving", "_package.py"), ("importing", "_spec.py"), ("importing", "_connector.py")}
"""Modules of C{connectors/kinds/mcp} that name the command which wrote the file in question, by its feature."""


class TextTests(SynchronousTestCase):
    """The texts of the core."""

    def test_no_command_of_a_feature(self) -> None:
        """No text outside of the features suggests a command that is refused when its feature is off."""
        commands = {
            name: each.name for each in FeatureSet().known for name, found in each.commands().items() if not found.now
        }
        root = Path(aileron_package.__file__).parent
        found = set[tuple[str, str]]()
        for path in sorted(root.rglob("*.py")):
            if path.relative_to(root).parts[0] != "features":
                for text in _find_texts(ast.parse(path.read_text("utf-8"))):
                    named = [name for name in commands if re.search(rf"\baileron {name}\b", text)]
                    found |= {(commands[name], path.name) for name in named}
        self.assertEqual(found, _WROTE_FILE)


def _find_texts(tree: ast.AST) -> Iterator[str]:
    """Yield the literals of a module, without docstrings."""
    described = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in described:
            yield each.value
