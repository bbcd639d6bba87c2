"""The rules of the house hold in the whole tree, and each rule catches what breaks it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent
from types import ModuleType

from twisted.trial.unittest import SynchronousTestCase

from tests import rules
from tests.rules import ELSEWHERE, Rule, Source, read_tree

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = read_tree(_ROOT, "aileron")
_TESTS = read_tree(_ROOT, "tests")

_IN_PACKAGE: list[Rule] = [
    rules.arrows,
    rules.layers,
    rules.long_module,
    rules.long_functions,
    rules.fragments,
    rules.module_level_reactor,
    rules.swallowed_exceptions,
    rules.possessive_groups,
    rules.addresses_read,
    rules.connector_calls,
    rules.secrets_opened,
    rules.database_access,
]
_EVERYWHERE: list[Rule] = [rules.async_tests_never_run, rules.undescribed_tests, rules.mocks]

_IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if "twisted.internet.reactor" in sys.modules:
        sys.exit(f"{name} installs a reactor")
"""


_UNDESCRIBED = """
__name__ = "module"
from zope.interface import Interface, implementer

class IThing(Interface):
    def promised():
        '''Is promised.'''

@implementer(IThing)
class Thing:
    def promised(self): ...
    def alone(self): ...
    @property
    def bare(self): ...
    def said(self):
        '''Says what it does.'''
    def _private(self): ...
"""


def _beyond_the_ground(room: str) -> set[str]:
    doors = {door.removeprefix("aileron.") for door in rules.OFFLINE_DOORS.get(room, ())}
    return set(rules.ALLOWED[room] - {"addresses", "interfaces", "values", "errors"}) | doors


class TreeTests(SynchronousTestCase):
    """The tree as it stands keeps every rule."""

    def test_package(self) -> None:
        """No module of the package breaks a rule."""
        self.assertEqual([line for rule in _IN_PACKAGE for source in _PACKAGE for line in rule(source)], [])

    def test_everywhere(self) -> None:
        """No test, shipped or not, breaks a rule."""
        self.assertEqual([line for rule in _EVERYWHERE for source in _PACKAGE + _TESTS for line in rule(source)], [])

    def test_every_room_is_in_the_table(self) -> None:
        """Each room has a line in the table of who may import whom, and each line a room."""
        rooms = {source.name.split(".")[1] for source in _PACKAGE if "." in source.name}
        self.assertEqual(rooms, set(rules.ALLOWED))

    def test_every_room_is_on_the_page(self) -> None:
        """The table of doc/architecture.md is the table that is enforced."""
        page = (_ROOT / "doc" / "architecture.md").read_text(encoding="utf-8")
        rooms = page[page.index("## Rooms") :]
        rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", rooms, re.MULTILINE)
        told = {room: set(re.findall(r"`([\w.]+)`", names)) for room, names in rows}
        self.assertEqual(told, {room: _beyond_the_ground(room) for room in rules.ALLOWED})

    def test_every_file_is_on_the_page(self) -> None:
        """doc/files.md lists each file with its first sentence, as the files stand."""
        page = _ROOT / "doc" / "files.md"
        listed = rules.list_files(source for source in _PACKAGE if ".testing" not in source.name)
        if "AILERON_FILES" in os.environ:
            page.write_text(listed, encoding="utf-8")
        self.assertEqual(page.read_text(encoding="utf-8"), listed)

    def test_every_place_to_change_something(self) -> None:
        """Each file to which CONTRIBUTING.md sends who wants to change something is there."""
        page = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        section = page[page.index("## To change something") : page.index("## Add an agent")]
        rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)
        named = [path for row in rows[1:] for path in re.findall(r"`([\w./-]+)`", row)]
        self.assertGreater(len(named), 30)
        missing = [path for path in named if not (_ROOT / "aileron" / path).exists() and not (_ROOT / path).exists()]
        self.assertEqual(missing, [])

    def test_no_reactor_is_installed(self) -> None:
        """Importing any module but those that hold Klein leaves the choice of the reactor open."""
        klein = ("aileron.api", "aileron.gateway", "aileron.web")
        names = [
            source.name
            for source in _PACKAGE
            if not source.name.startswith(klein) and "__main__" not in source.name and source.name not in ELSEWHERE
        ]
        found = subprocess.run([sys.executable, "-c", _IMPORT_ALL, *names], capture_output=True, text=True, check=False)
        self.assertEqual(found.returncode, 0, found.stderr)

    def test_one_name_one_thing(self) -> None:
        """No two classes have one name, with or without an underscore before it."""
        found = Counter(name for source in _PACKAGE for name in rules.class_names(source))
        self.assertEqual([name for name, count in found.items() if count > 1], [])

    def test_described(self) -> None:
        """Each public method says what it does, or implements or overrides one that does."""
        self.assertEqual(list(rules.undescribed_methods(rules.package_modules())), [])

    def test_undescribed(self) -> None:
        """A method that neither its own docstring nor an interface describes is found."""
        module = ModuleType("module")
        exec(dedent(_UNDESCRIBED), vars(module))
        found = [name.rpartition(".")[2] for name in rules.undescribed_methods([module])]
        self.assertEqual(found, ["alone", "bare"])


class RuleCase(SynchronousTestCase):
    """Applies a rule to a snippet."""

    def check(self, rule: Rule, text: str, name: str = "aileron.runner._x", *, caught: bool) -> None:
        """Assert that a rule catches a snippet, or accepts it."""
        found = list(rule(Source(name, dedent(text))))
        self.assertEqual(bool(found), caught, f"{text!r}: {found}")


class ArrowsTests(RuleCase):
    """Imports point one way and enter by the door."""

    def arrow(self, name: str, text: str, *, caught: bool) -> None:
        """Check one import of one module."""
        self.check(rules.arrows, text, name, caught=caught)

    def test_closed_room(self) -> None:
        """A room that the table does not open is refused, however it is imported."""
        self.arrow("aileron.runner._x", "from aileron.vault import open_vault", caught=True)
        self.arrow("aileron.runner._x", "import aileron.vault", caught=True)
        self.arrow("aileron.runner._x", "from aileron import vault", caught=True)
        self.arrow("aileron.runner._x", "from ..vault import open_vault", caught=True)
        self.arrow("aileron.client._x", "def f():\n    from aileron.home import Home", caught=True)

    def test_open_room(self) -> None:
        """Another room's door may be entered where the table says so."""
        self.arrow("aileron.runner._x", "from aileron.manifests import Catalogue", caught=False)
        self.arrow("aileron.runner._x", "from aileron.errors import NotFound", caught=False)
        self.arrow("aileron.runner._x", "from ._machine import Machine", caught=False)
        self.arrow("aileron.runner._x", "from aileron import __version__", caught=False)

    def test_past_the_door(self) -> None:
        """An underscore module or name of another room is refused."""
        self.arrow("aileron.runner._x", "from aileron.manifests._parse import parse", caught=True)
        self.arrow("aileron.runner._x", "from aileron.manifests import _parse", caught=True)
        self.arrow("aileron.runner._x", "import aileron.manifests._parse", caught=True)

    def test_offline_doors(self) -> None:
        """The command line may check files and open the vault without a daemon, and no more of those rooms."""
        self.arrow("aileron.cli._x", "from aileron.vault.keys import open_vault", caught=False)
        self.arrow("aileron.cli._x", "from aileron.manifests import check", caught=False)
        self.arrow("aileron.cli._x", "from aileron.manifests import parse", caught=True)
        self.arrow("aileron.mcp._x", "from aileron.manifests import check", caught=True)

    def test_klein_below_make_service(self) -> None:
        """The daemon imports the rooms that hold Klein only inside a function."""
        self.arrow("aileron.daemon", "from aileron.api import agent_site", caught=True)
        self.arrow("aileron.daemon", "def makeService():\n    from aileron.api import agent_site", caught=False)

    def test_package_door(self) -> None:
        """A relative import in a package's door stays in its room."""
        door = Source("aileron.runner", "from ._machine import Machine", is_package=True)
        self.assertEqual(list(rules.arrows(door)), [])


class LayersTests(RuleCase):
    """Imports within a room point one way too."""

    def test_down(self) -> None:
        """A package may import those below it and itself, and the modules that compose them may import all."""
        for name, text in (
            ("aileron.runner.grants", "from aileron.runner.gate import ApprovalGate"),
            ("aileron.runner.grants.x", "from .y import GrantMatcher"),
            ("aileron.runner._x", "from aileron.runner.grants import GrantMatcher"),
        ):
            self.check(rules.layers, text, name, caught=False)

    def test_up(self) -> None:
        """A package may import neither one above it nor what composes them."""
        for text in (
            "from aileron.runner.grants import GrantMatcher",
            "from aileron.runner import grants",
            "from aileron.runner._executor import Executor",
            "from aileron.runner import Runner",
            "def f():\n    import aileron.runner._executor",
        ):
            self.check(rules.layers, text, "aileron.runner.gate", caught=True)

    def test_no_layer(self) -> None:
        """A package or public module that the table does not name is refused."""
        self.check(rules.layers, "", "aileron.runner.other.x", caught=True)

    def test_every_part(self) -> None:
        """The table names the packages and public modules that are there."""
        for room, parts in rules.LAYERS.items():
            inside = [source.name.removeprefix(f"{room}.") for source in _PACKAGE if source.name.startswith(f"{room}.")]
            self.assertEqual({name.split(".")[0] for name in inside if not name.startswith("_")}, set(parts))


class ShapeTests(RuleCase):
    """Sizes, reactors and handlers."""

    def test_long_module(self) -> None:
        """A module of 401 lines is refused, one of 400 is not."""
        self.check(rules.long_module, "x = 1\n" * 401, caught=True)
        self.check(rules.long_module, "x = 1\n" * 400, caught=False)

    def test_long_function(self) -> None:
        """A function body of 51 lines is refused; the docstring does not count."""
        head = 'async def f():\n    """' + "line\n    " * 60 + '"""\n'
        self.check(rules.long_functions, head + "    x = 1\n" * 51, caught=True)
        self.check(rules.long_functions, head + "    x = 1\n" * 50, caught=False)

    def test_reactor(self) -> None:
        """A reactor at module level is refused, inside a function it is not."""
        self.check(rules.module_level_reactor, "from twisted.internet import defer, reactor", caught=True)
        self.check(rules.module_level_reactor, "import twisted.internet.reactor", caught=True)
        self.check(rules.module_level_reactor, "if True:\n    from twisted.internet import reactor", caught=True)
        self.check(rules.module_level_reactor, "def f():\n    from twisted.internet import reactor", caught=False)
        self.check(
            rules.module_level_reactor, "if TYPE_CHECKING:\n    from twisted.internet import reactor", caught=False
        )
        self.check(rules.module_level_reactor, "from twisted.internet import defer", caught=False)

    def test_klein(self) -> None:
        """Klein, which installs a reactor, may stand at module level only in api and web."""
        self.check(rules.module_level_reactor, "from klein import Klein", caught=True)
        self.check(rules.module_level_reactor, "from klein import Klein", "aileron.api._x", caught=False)
        self.check(rules.module_level_reactor, "from twisted.internet import reactor", "aileron.api._x", caught=True)

    def test_possessive_groups(self) -> None:
        """A group that gives nothing back is noticed; one character that gives nothing back is fine."""
        self.check(rules.possessive_groups, 'A = rb"(?:a+b)*+c"', caught=True)
        self.check(rules.possessive_groups, 'A = "(?>a|b)c"', caught=True)
        self.check(rules.possessive_groups, 'A = rb"(?:a++b)*c"', caught=False)
        self.check(rules.possessive_groups, 'A = r"[()*+,-]+"', caught=False)
        self.check(rules.possessive_groups, 'A = r"(?:a|b)[cd]++"', caught=False)

    def test_swallowed(self) -> None:
        """A bare except and a dropped Exception are refused, a dropped narrow error is not."""
        self.check(rules.swallowed_exceptions, "try:\n    f()\nexcept:\n    g()", caught=True)
        self.check(rules.swallowed_exceptions, "try:\n    f()\nexcept Exception:\n    pass", caught=True)
        self.check(rules.swallowed_exceptions, "try:\n    f()\nexcept (OSError, BaseException):\n    pass", caught=True)
        self.check(rules.swallowed_exceptions, "try:\n    f()\nexcept Exception:\n    g()", caught=False)
        self.check(rules.swallowed_exceptions, "try:\n    f()\nexcept FileNotFoundError:\n    pass", caught=False)


class CallsTests(RuleCase):
    """One caller of connectors, two rooms and a module that open secrets."""

    def test_addresses(self) -> None:
        """Only one room reads URLs and IP addresses, so that all read them alike."""
        for text in ("from urllib.parse import urlsplit", "from ipaddress import ip_address", "import ipaddress"):
            self.check(rules.addresses_read, text, caught=True)
            self.check(rules.addresses_read, text, "aileron.addresses._urls", caught=False)
        self.check(rules.addresses_read, "from urllib.parse import quote", caught=False)

    def test_invoke(self) -> None:
        """Invoking and reconciling are the executor's, whatever the receiver is called."""
        for text in ("await c.invoke(r)", "self.it.reconcile(key)"):
            self.check(rules.connector_calls, f"async def f(c, r):\n    {text}", caught=True)
            self.check(rules.connector_calls, f"async def f(c, r):\n    {text}", "aileron.api._x", caught=True)
            self.check(
                rules.connector_calls, f"async def f(c, r):\n    {text}", "aileron.runner._executor", caught=False
            )
            self.check(rules.connector_calls, f"async def f(c, r):\n    {text}", "aileron.connectors._x", caught=False)

    def test_read(self) -> None:
        """Reading through a connector is the executor's; reading a file is not the same."""
        self.check(rules.connector_calls, "c.read(request)", caught=True)
        self.check(rules.connector_calls, "self.connectors.get(n).read(request)", "aileron.api._x", caught=True)
        self.check(rules.connector_calls, "request.content.read()", "aileron.api._x", caught=False)
        self.check(rules.connector_calls, "c.read(request)", "aileron.runner._executor", caught=False)

    def test_reveal(self) -> None:
        """A credential is opened by connectors, the vault, and where keys are put in or channels opened, alone."""
        self.check(rules.secrets_opened, "credential.reveal()", caught=True)
        self.check(rules.secrets_opened, "credential.reveal()", "aileron.runner._executor", caught=True)
        self.check(rules.secrets_opened, "credential.reveal()", "aileron.connectors._x", caught=False)
        self.check(rules.secrets_opened, "credential.reveal()", "aileron.gateway._injection", caught=False)
        self.check(rules.secrets_opened, "credential.reveal()", "aileron.gateway._gateway", caught=True)
        self.check(rules.secrets_opened, "credential.reveal()", "aileron.notices._channels", caught=False)
        self.check(rules.secrets_opened, "credential.reveal()", "aileron.notices._webhook", caught=True)


class DocstringTests(RuleCase):
    """A docstring is a plain sentence about the thing."""

    def test_fragment(self) -> None:
        """One that begins with a question word is found, wherever it stands."""
        for text in ('"""What it is."""', "class A:\n    '''How it is.'''", "def f():\n    '''Whether it is.'''"):
            self.check(rules.fragments, text, caught=True)

    def test_sentence(self) -> None:
        """One that does not is accepted, and a test's may be a sentence of that kind."""
        for text in ('"""Whatever it is."""', "def test_a():\n    '''What is put is found.'''", "def f(): ..."):
            self.check(rules.fragments, text, caught=False)


class DatabaseTests(RuleCase):
    """SQL stands in the store."""

    def test_statements(self) -> None:
        """A statement in a string, plain or formatted, is refused outside the store."""
        for text in ("'SELECT id FROM runs'", "f'UPDATE runs SET state = {s!r}'", "'''\n  delete from runs'''"):
            self.check(rules.database_access, f"f({text})", caught=True)
            self.check(rules.database_access, f"f({text})", "aileron.store._runs", caught=False)

    def test_driver(self) -> None:
        """A database driver is refused outside the store."""
        self.check(rules.database_access, "import sqlite3", caught=True)
        self.check(rules.database_access, "from twisted.enterprise import adbapi", caught=True)

    def test_prose(self) -> None:
        """A sentence that begins like a statement is none."""
        self.check(rules.database_access, "f('Delete from the vault what is bound')", caught=False)
        self.check(rules.database_access, "f('select')", caught=False)


class TestingTests(RuleCase):
    """Rules about tests."""

    def test_async(self) -> None:
        """An async test is refused unless its class awaits it, or a decorator runs it."""
        body = "    async def test_x(self):\n        '''X.'''\n"
        self.check(rules.async_tests_never_run, f"class A(SynchronousTestCase):\n{body}", caught=True)
        self.check(rules.async_tests_never_run, f"class Mixin:\n{body}", caught=True)
        self.check(rules.async_tests_never_run, f"class B(A):\n{body}class A(SynchronousTestCase): pass", caught=True)
        self.check(rules.async_tests_never_run, "class MyTestCase(SynchronousTestCase): pass", caught=True)
        self.check(rules.async_tests_never_run, f"class A(unittest.TestCase):\n{body}", caught=False)
        self.check(rules.async_tests_never_run, f"class A(X):\n    @in_a_loop\n{body}", caught=False)
        self.check(rules.async_tests_never_run, f"class A(X):\n    @other\n{body}", caught=True)
        self.check(rules.async_tests_never_run, f"class A(FunctionalTestCase):\n{body}", caught=False)
        self.check(rules.async_tests_never_run, f"class B(A):\n{body}class A(TestCase): pass", caught=False)

    def test_docstring(self) -> None:
        """A test without a docstring is refused."""
        self.check(rules.undescribed_tests, "def test_x(self):\n    pass", caught=True)
        self.check(rules.undescribed_tests, "def test_x(self):\n    'X.'", caught=False)

    def test_mock(self) -> None:
        """A mock is refused, by whatever import."""
        for text in (
            "import unittest.mock",
            "from unittest import mock",
            "from unittest.mock import Mock",
            "import mock",
        ):
            self.check(rules.mocks, text, caught=True)
        self.check(rules.mocks, "from unittest import TestSuite", caught=False)
