"""Of the registry: shipped files, the user's files, and plugins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.json import digest_of_bytes
from aileron.connectors import Registry, check
from aileron.connectors._screened import Screened
from aileron.model.interfaces.connectors import IConnector, IConnectors
from aileron.model.trust import Candidate, TrustKind
from tests.connectors.service import Service
from tests.connectors.test_schema import GOOD

PLUGIN = """
from twisted.plugin import IPlugin
from zope.interface import classImplements, implementer
from aileron.model.interfaces.connectors import IConnector
from aileron.testing import ScriptedConnector, scripted_description

classImplements(ScriptedConnector, IPlugin)

@implementer(IPlugin)
class Nothing:
    pass

@implementer(IPlugin)
class Raises(ScriptedConnector):
    def describe(self):
        raise RuntimeError

good = ScriptedConnector(scripted_description(fqn="local://plugged/in"))
"""


def _identity(connector: IConnector) -> tuple[str, str]:
    return connector.describe().version, connector.describe().content_hash


class RegistryCase(SynchronousTestCase):
    """A registry over a directory of its own."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).resolve()
        self.directory.mkdir()

    def registry(self, *packages: str) -> Registry:
        """A fresh one."""
        return Registry(self.directory, Service().workshop, packages)

    def write(self, name: str, text: str = GOOD) -> Path:
        """One file of the user's."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path


class CandidateTests(RegistryCase):
    """What the operator is asked about."""

    def test_sound_files(self) -> None:
        """Each sound file of the user's is a candidate, with the very bytes that its connector was made of."""
        path = self.write("tracker.toml")
        registry = self.registry()
        verifyObject(IConnectors, registry)
        (candidate,) = registry.candidates()
        connector = registry.get("local://me/tracker")
        assert connector is not None
        expected = Candidate(TrustKind.CONNECTOR, "local://me/tracker", digest_of_bytes(GOOD.encode()), str(path), GOOD)
        self.assertEqual(expected, candidate)
        self.assertEqual(candidate.digest, connector.describe().content_hash)

    def test_neither_malformed_nor_twice(self) -> None:
        """A malformed file, and a name that two files use, are load errors and nobody's candidates; others load."""
        bad = self.write("bad.toml", GOOD.replace("1.2.3", "new"))
        self.write("one.toml")
        self.write("two.toml", GOOD.replace("1.2.3", "1.2.4"))
        self.write("good.toml", GOOD.replace("me/tracker", "me/other"))
        registry = self.registry()
        self.assertEqual(["local://me/other"], [each.name for each in registry.candidates()])
        self.assertEqual(["duplicate", "duplicate", "validation_error"], sorted(e.kind for e in registry.problems()))
        self.assertIn((str(bad), 3), [(each.file, each.line) for each in registry.problems()])
        self.assertIsNone(registry.get("local://me/tracker"))
        self.assertIsNotNone(registry.get("local://me/other"))


class DirectoryTests(RegistryCase):
    """The user's files."""

    def test_refresh(self) -> None:
        """A new, a changed and a removed file each grow the generation; an unchanged one keeps its connector.

        What the operator is asked about is each time the file that is there.
        """
        registry = self.registry()
        generations = [registry.generation()]

        def refreshed() -> str | None:
            registry.refresh()
            generations.append(registry.generation())
            found = registry.get("local://me/tracker")
            version = None if found is None else found.describe().version
            self.assertEqual(
                [found.describe().content_hash] if found else [], [e.digest for e in registry.candidates()]
            )
            return version

        self.assertEqual(None, refreshed())
        path = self.write("tracker.toml")
        self.assertEqual("1.2.3", refreshed())
        before = registry.get("local://me/tracker")
        self.assertEqual("1.2.3", refreshed())
        self.assertIs(before, registry.get("local://me/tracker"))
        self.write("tracker.toml", GOOD.replace("1.2.3", "1.2.4"))
        self.assertEqual("1.2.4", refreshed())
        path.unlink()
        self.assertEqual(None, refreshed())
        self.assertEqual([1, 1, 2, 2, 3, 4], generations)

    def test_a_connector_stays_what_it_is(self) -> None:
        """Who holds a connector holds the bytes that it was made of, whatever becomes of the file."""
        path = self.write("tracker.toml")
        registry = self.registry()
        held = registry.get("local://me/tracker")
        assert held is not None
        path.write_text(GOOD.replace("1.2.3", "1.2.4"), encoding="utf-8")
        registry.refresh()
        self.assertEqual(("1.2.3", digest_of_bytes(GOOD.encode())), _identity(held))
        self.assertNotEqual(held.describe(), registry.descriptions()[-1])

    def test_builtin_name(self) -> None:
        """A file of the user's cannot call itself builtin."""
        self.write("slack.toml", GOOD.replace("local://me/tracker", "builtin://slack"))
        registry = self.registry()
        self.assertEqual(["validation_error"], [each.kind for each in registry.problems()])
        slack = registry.get("builtin://slack")
        self.assertEqual("https://slack.com", slack and slack.describe().base_url)

    def test_only_plain_files(self) -> None:
        """Links, directories, FIFOs, and files that are large, another user's or open to everybody are reported.

        An editor's hidden file and one of another kind are not looked at; without a directory there is nothing.
        """
        for name in (".tracker.toml", "tracker.toml~"):
            self.write(name, "nonsense")
        self.assertEqual((), self.registry().problems())
        (self.directory / "link.toml").symlink_to(self.write("target.txt"))
        (self.directory / "folder.toml").mkdir()
        os.mkfifo(self.directory / "pipe.toml")
        self.write("large.toml", GOOD + "#" * 70_000)
        self.write("open.toml").chmod(0o666)
        registry = self.registry()
        self.assertEqual(["unreadable"] * 5, [each.kind for each in registry.problems()])
        self.assertIsNone(registry.get("local://me/tracker"))
        self.assertEqual((), Registry(self.directory / "nowhere", Service().workshop).problems())

    def test_file_of_another_user(self) -> None:
        """A file that belongs to another user is reported."""
        self.write("tracker.toml")
        other = os.geteuid() + 1
        self.patch(os, "geteuid", lambda: other)
        self.assertEqual(["unreadable"], [each.kind for each in self.registry().problems()])

    def test_linked_directory(self) -> None:
        """A directory that is a symbolic link is not read."""
        self.write("tracker.toml")
        link = self.directory.with_name(self.directory.name + "-link")
        link.symlink_to(self.directory)
        registry = Registry(link, Service().workshop)
        self.assertEqual(["unreadable"], [each.kind for each in registry.problems()])
        self.assertIsNone(registry.get("local://me/tracker"))

    def test_check(self) -> None:
        """The offline check tells the faults of one file, and nothing of a good one."""
        self.assertEqual([], check(self.write("good.toml")))
        self.assertEqual([3], [each.line for each in check(self.write("bad.toml", GOOD.replace("1.2.3", "x")))])
        self.assertEqual(["unreadable"], [each.kind for each in check(self.directory / "none.toml")])
        self.assertEqual(1, len(check(self.write("slack.toml", GOOD.replace("local://me/tracker", "builtin://slack")))))


class PluginTests(RegistryCase):
    """Connectors written in Python."""

    def package(self, name: str, **modules: str) -> str:
        """A package of plugins that can be imported and lies outside of the working directory."""
        root = Path(self.mktemp()).resolve()
        package = root / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        for module, text in modules.items():
            (package / f"{module}.py").write_text(text)
        self.patch(sys, "path", [str(root), *sys.path])
        self.addCleanup(self._forget, name)
        elsewhere = Path(self.mktemp()).resolve()
        elsewhere.mkdir()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(elsewhere)
        return name

    def _forget(self, name: str) -> None:
        for module in [each for each in sys.modules if each.partition(".")[0] == name]:
            del sys.modules[module]

    def test_malformed(self) -> None:
        """A plugin that is no connector, or a module that does not import, is malformed; the others load."""
        name = self.package(
            "plugged_bad", one=PLUGIN + "bad = Nothing()\nworse = Raises()\n", two="raise RuntimeError('no')\n"
        )
        registry = self.registry(name)
        self.assertEqual(["malformed"] * 3, [each.kind for each in registry.problems()])
        self.assertIsInstance(registry.get("local://plugged/in"), Screened)
        self.assertEqual((), registry.candidates())
        self.flushLoggedErrors(RuntimeError)

    def test_package_raises(self) -> None:
        """A package that raises when it is imported is malformed; all else loads."""
        name = self.package("plugged_raising")
        (Path(sys.path[0]) / name / "__init__.py").write_text("raise RuntimeError('no')\n")
        registry = self.registry(name)
        self.assertEqual(["malformed"], [each.kind for each in registry.problems()])
        self.assertIsNotNone(registry.get("builtin://slack"))

    def test_names(self) -> None:
        """Two plugins of one name do not load, nor does one that claims to be shipped, nor what is not there."""
        for packages, kinds, name in (
            ([self.package("plugged_twice", one=PLUGIN, two=PLUGIN)], ["duplicate"] * 2, "local://plugged/in"),
            (
                [self.package("plugged_claim", one=PLUGIN.replace("local://", "builtin://"))],
                ["malformed"],
                "builtin://plugged/in",
            ),
            (["plugged_nowhere"], ["missing"], "local://plugged/in"),
        ):
            registry = self.registry(*packages)
            self.assertEqual(kinds, [each.kind for each in registry.problems()])
            self.assertIsNone(registry.get(name))

    def test_file_against_plugin(self) -> None:
        """A file of the user's does not take the name of a plugin."""
        self.write("in.toml", GOOD.replace("local://me/tracker", "local://plugged/in"))
        registry = self.registry(self.package("plugged_first", one=PLUGIN))
        self.assertEqual(["duplicate"], [each.kind for each in registry.problems()])
        found = registry.get("local://plugged/in")
        self.assertEqual("1.0.0", found and found.describe().version)

    def test_working_directory(self) -> None:
        """A package that lies in the working directory is not imported."""
        name = self.package("plugged_here", one=PLUGIN)
        os.chdir(sys.path[0])
        self.assertEqual(["missing"], [each.kind for each in self.registry(name).problems()])
        self.assertNotIn(name, sys.modules)
