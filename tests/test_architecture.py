"""The rules of the house hold in the whole tree, and each rule catches what breaks it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
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
    rules.long_functions,
    rules.long_chains,
    rules.wide_constructors,
    rules.fragments,
    rules.module_level_reactor,
    rules.swallowed_exceptions,
    rules.possessive_groups,
    rules.foreign_readers,
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


class TreeTests(SynchronousTestCase):
    """The tree as it stands keeps every rule."""

    def test_package(self) -> None:
        """No module of the package, and no test, shipped or not, breaks a rule."""
        self.assertEqual([line for rule in _IN_PACKAGE for source in _PACKAGE for line in rule(source)], [])
        self.assertEqual([line for rule in _EVERYWHERE for source in _PACKAGE + _TESTS for line in rule(source)], [])

    def test_chains(self) -> None:
        """Each chain of objects through which a call may still go stands somewhere."""
        self.assertEqual(rules.needless_chains(_PACKAGE), set())

    def test_no_circles(self) -> None:
        """No modules import each other in a circle, not even for type checkers, but for those that are named."""
        self.assertEqual([*rules.circles(_PACKAGE)], [])
        pair = [Source("aileron.a._x", "from ._y import y"), Source("aileron.a._y", "def f():\n    from . import _x")]
        self.assertEqual(len([*rules.circles([*_PACKAGE, *pair])]), 1)

    def test_interfaces_have_two_sides(self) -> None:
        """Each interface has a second implementation, or a fake that tests use."""
        self.assertEqual([*rules.one_sided_interfaces(_PACKAGE + _TESTS)], [])
        thing = "class IThing(Interface): ..."
        one, other = "@implementer(IThing)\nclass A: ...", "class B(proxyForInterface(IThing)): ..."
        for texts, found in (([thing, one], 1), ([thing, one, one], 0), ([thing, one, other], 0), ([thing], 0)):
            self.assertEqual(len([*rules.one_sided_interfaces(Source("aileron.x", each) for each in texts)]), found)

    def test_every_room_is_in_the_table(self) -> None:
        """Each room is in the table of who may import whom and on the page, and each feature in its table."""
        rooms = {source.name.split(".")[1] for source in _PACKAGE if "." in source.name}
        self.assertEqual(rooms, set(rules.ALLOWED))
        page = (_ROOT / "doc" / "architecture.md").read_text(encoding="utf-8")
        table = page[page.index("## Rooms") : page.index("## Add a feature")]
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)), rooms)
        features = {source.name.split(".")[2] for source in _PACKAGE if source.name.startswith("aileron.features.")}
        directories = {each for each in features if (_ROOT / "aileron" / "features" / each).is_dir()}
        self.assertEqual(directories, set(rules.FEATURES))

    def test_every_file_is_on_the_page(self) -> None:
        """doc/files.md lists each file with its first sentence, as the files stand."""
        page = _ROOT / "doc" / "files.md"
        listed = rules.list_files(source for source in _PACKAGE if ".testing" not in source.name)
        if "AILERON_FILES" in os.environ:
            page.write_text(listed, encoding="utf-8")
        self.assertEqual(page.read_text(encoding="utf-8"), listed)

    def test_every_place_to_change_something(self) -> None:
        """Each file to which CONTRIBUTING.md sends who wants to change something is there; each change has one row."""
        page = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        section = page[page.index("## To change something") : page.index("## Words")]
        rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
        changes = [change.partition(",")[0] for change, _ in rows]
        self.assertEqual([change for change in changes if changes.count(change) > 1], [])
        named = [path for _, row in rows[1:] for path in re.findall(r"`([\w./-]+)`", row)]
        self.assertGreater(len(named), 30)
        missing = [path for path in named if not (_ROOT / "aileron" / path).exists() and not (_ROOT / path).exists()]
        self.assertEqual(missing, [])

    def test_no_row_twice(self) -> None:
        """No table of CONTRIBUTING.md has two rows about the same thing."""
        page = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
            firsts = [row.split("|")[1].strip() for row in table.splitlines()]
            self.assertEqual([first for first in firsts if firsts.count(first) > 1], [])

    def test_no_reactor_is_installed(self) -> None:
        """Importing any module but those that hold Klein leaves the choice of the reactor open."""
        klein = ("aileron.api", "aileron.web", "aileron.features.")
        names = [
            source.name
            for source in _PACKAGE
            if ((source.name.count(".") == 2 and source.is_package) or not source.name.startswith(klein))
            and not source.name.startswith(klein[:2])
            and "__main__" not in source.name
            and source.name not in ELSEWHERE
        ]
        found = subprocess.run([sys.executable, "-c", _IMPORT_ALL, *names], capture_output=True, text=True, check=False)
        self.assertEqual(found.returncode, 0, found.stderr)

    def test_one_name_one_thing(self) -> None:
        """No two classes have one name, with or without an underscore before it."""
        found = Counter(name for source in _PACKAGE for name in rules.class_names(source))
        self.assertEqual([name for name, count in found.items() if count > 1], [])

    def test_described(self) -> None:
        """Each public method is described, or implements or overrides one that is; another is found."""
        self.assertEqual(list(rules.undescribed_methods(rules.package_modules())), [])
        module = ModuleType("module")
        exec(dedent(_UNDESCRIBED), vars(module))
        found = [name.rpartition(".")[2] for name in rules.undescribed_methods([module])]
        self.assertEqual(found, ["alone", "bare"])


_ASYNC = "    async def test_x(self):\n        '''X.'''\n"
_LONG = 'async def f():\n    """' + "line\n    " * 60 + '"""\n'
_FIELDS = "".join(f"    {name}: int\n" for name in "abcdefgh")
_WIDE = "class A:\n    def __init__(self, a, b, c, d, *, e, f, g, h, i): ..."
_ADDRESSES = ("from urllib.parse import urlsplit", "from ipaddress import ip_network", "import ipaddress")
_CALLS = ("async def f(c, r):\n    await c.invoke(r)", "self.it.reconcile(key)", "self.connectors.get(n).read(request)")
_STATEMENTS = ("f('SELECT id FROM runs')", "f(f'UPDATE runs SET state = {s!r}')", "f('''\n  delete from runs''')")

_TRIED: list[tuple[Rule, str, Sequence[str], Sequence[str]]] = [
    # a room that the table does not open, however it is imported, and what lies behind another's door
    (
        rules.arrows,
        "aileron.runner._x",
        (
            "from aileron.vault import open_vault",
            "import aileron.vault",
            "from aileron import vault",
            "from ..vault import open_vault",
            "from aileron.actions._parse import parse",
            "from aileron.actions import _parse",
            "import aileron.actions._parse",
        ),
        (
            "from aileron.actions import Catalogue",
            "from aileron.model.errors import NotFound",
            "from ._machine import Machine",
            "from aileron import __version__",
        ),
    ),
    (rules.arrows, "aileron.client._x", ("def f():\n    from aileron.home import Home",), ()),
    # the command line may check files and open the vault without a daemon, and no more of those rooms
    (
        rules.arrows,
        "aileron.cli._x",
        ("from aileron.vault import Vault", "from aileron.connectors import Registry"),
        ("from aileron.vault.keys import open_vault", "from aileron.connectors import check"),
    ),
    (rules.arrows, "aileron.mcp._x", ("from aileron.actions import check",), ()),
    # core imports no feature; a feature imports core, the features that it names, and nothing private of either
    (rules.arrows, "aileron.runner._x", ("from aileron.features.notices import FEATURE",), ()),
    (rules.arrows, "aileron.review._x", ("from aileron.features.egress.values import EgressHost",), ()),
    (
        rules.arrows,
        "aileron.features.notices._x",
        (
            "from aileron.features.egress.values import EgressHost",
            "from aileron.daemon import start",
            "from aileron.runner.executor import Executor",
        ),
        ("from aileron.runner import Runner", "from aileron.features.core import Core", "from ._y import z"),
    ),
    (
        rules.arrows,
        "aileron.features.inband._x",
        ("from aileron.features.gateway._pool import Pool",),
        ("from aileron.features.gateway.exchange import UpstreamExchange",),
    ),
    # the daemon imports the rooms that hold Klein only inside a function
    (
        rules.arrows,
        "aileron.daemon",
        ("from aileron.api import agent_site",),
        ("def makeService():\n    from aileron.api import agent_site",),
    ),
    # within a room a package may import neither one above it nor what composes them
    (
        rules.layers,
        "aileron.runner.approvals",
        (
            "from aileron.runner.grants import GrantMatcher",
            "from aileron.runner import grants",
            "from aileron.runner.executor import Executor",
            "from aileron.runner import Runner",
            "def f():\n    import aileron.runner.executor",
        ),
        (),
    ),
    (rules.layers, "aileron.runner.grants", (), ("from aileron.runner.approvals import ApprovalGate",)),
    (rules.layers, "aileron.runner.grants.x", (), ("from .y import GrantMatcher",)),
    (rules.layers, "aileron.runner._x", (), ("from aileron.runner.grants import GrantMatcher",)),
    (rules.layers, "aileron.runner.other.x", ("",), ()),
    # the docstring of a function does not count
    (rules.long_functions, "aileron.runner._x", (_LONG + "    x = 1\n" * 51,), (_LONG + "    x = 1\n" * 50,)),
    # calls go through the collaborators that an object owns, not through theirs
    (
        rules.long_chains,
        "aileron.runner._x",
        ("self._gate.requests.refresh()", "self.a.b.c.d(1)", "f(self._a.b.c())"),
        ("self._requests.refresh()", "f(self._a.b.c)", "run.state.value.upper()", "self.f().b.c()"),
    ),
    # what a class that acts is made of; a value may have more, and so may what is not given to the constructor
    (
        rules.wide_constructors,
        "aileron.runner._x",
        (f"@define(eq=False)\nclass A:\n{_FIELDS}    x: int = 1", _WIDE),
        (
            f"@define\nclass A:\n{_FIELDS}    x: int = field(default=1, init=False)\n    y: ClassVar[int] = 1",
            f"@frozen\nclass A:\n{_FIELDS}    x: int = 1",
            _WIDE.replace(", i)", ")"),
        ),
    ),
    # a reactor, or Klein, which installs one, may stand inside a function only; Klein also in api and web
    (
        rules.module_level_reactor,
        "aileron.runner._x",
        (
            "from twisted.internet import defer, reactor",
            "import twisted.internet.reactor",
            "if True:\n    from twisted.internet import reactor",
            "from klein import Klein",
        ),
        (
            "def f():\n    from twisted.internet import reactor",
            "if TYPE_CHECKING:\n    from twisted.internet import reactor",
            "from twisted.internet import defer",
        ),
    ),
    (
        rules.module_level_reactor,
        "aileron.api._x",
        ("from twisted.internet import reactor",),
        ("from klein import Klein",),
    ),
    # a group that gives nothing back; one character that gives nothing back is fine
    (
        rules.possessive_groups,
        "aileron.runner._x",
        ('A = rb"(?:a+b)*+c"', 'A = "(?>a|b)c"'),
        ('A = rb"(?:a++b)*c"', 'A = r"[()*+,-]+"', 'A = r"(?:a|b)[cd]++"'),
    ),
    (
        rules.swallowed_exceptions,
        "aileron.runner._x",
        (
            "try:\n    f()\nexcept:\n    g()",
            "try:\n    f()\nexcept Exception:\n    pass",
            "try:\n    f()\nexcept (OSError, BaseException):\n    pass",
        ),
        ("try:\n    f()\nexcept Exception:\n    g()", "try:\n    f()\nexcept FileNotFoundError:\n    pass"),
    ),
    # only one room reads URLs and IP addresses, and one TOML, so that all read them alike
    (rules.foreign_readers, "aileron.runner._x", (*_ADDRESSES, "import tomllib"), ("from urllib.parse import quote",)),
    (rules.foreign_readers, "aileron.base.toml", _ADDRESSES, ("import tomllib",)),
    (rules.foreign_readers, "aileron.base.addresses._urls", (), _ADDRESSES),
    # invoking, reconciling and reading through a connector are the executor's, whatever the receiver is called
    (rules.connector_calls, "aileron.runner._x", (*_CALLS, "c.read(request)"), ()),
    (rules.connector_calls, "aileron.api._x", _CALLS, ("request.content.read()",)),
    (rules.connector_calls, "aileron.runner.executor", (), _CALLS),
    (rules.connector_calls, "aileron.connectors._x", (), _CALLS[:2]),
    # a credential is opened by connectors, the vault, and where keys are put in or channels opened, alone
    *(
        (rules.secrets_opened, f"aileron.{name}", ("credential.reveal()",), ())
        for name in ("runner._x", "runner.executor", "features.gateway._gateway", "features.notices._webhook")
    ),
    *(
        (rules.secrets_opened, f"aileron.{name}", (), ("credential.reveal()",))
        for name in ("connectors._x", "features.gateway._injection", "features.notices._channels")
    ),
    # a docstring that begins with a question word, wherever it stands; a test's may be a sentence of that kind
    (
        rules.fragments,
        "aileron.runner._x",
        ('"""What it is."""', "class A:\n    '''How it is.'''", "def f():\n    '''Whether it is.'''"),
        ('"""Whatever it is."""', "def test_a():\n    '''What is put is found.'''", "def f(): ..."),
    ),
    # a statement in a string, plain or formatted, and a driver, outside the store; a sentence that begins so is none
    (
        rules.database_access,
        "aileron.runner._x",
        (*_STATEMENTS, "import sqlite3", "from twisted.enterprise import adbapi"),
        ("f('Delete from the vault what is bound')", "f('select')"),
    ),
    (rules.database_access, "aileron.store._runs", (), _STATEMENTS),
    # an async test, unless its class awaits it or a decorator runs it
    (
        rules.async_tests_never_run,
        "tests.x",
        (
            f"class A(SynchronousTestCase):\n{_ASYNC}",
            f"class Mixin:\n{_ASYNC}",
            f"class B(A):\n{_ASYNC}class A(SynchronousTestCase): pass",
            "class MyTestCase(SynchronousTestCase): pass",
            f"class A(X):\n    @other\n{_ASYNC}",
        ),
        (
            f"class A(unittest.TestCase):\n{_ASYNC}",
            f"class A(X):\n    @in_a_loop\n{_ASYNC}",
            f"class A(FunctionalTestCase):\n{_ASYNC}",
            f"class B(A):\n{_ASYNC}class A(TestCase): pass",
        ),
    ),
    (rules.undescribed_tests, "tests.x", ("def test_x(self):\n    pass",), ("def test_x(self):\n    'X.'",)),
    (
        rules.mocks,
        "tests.x",
        ("import unittest.mock", "from unittest import mock", "from unittest.mock import Mock", "import mock"),
        ("from unittest import TestSuite",),
    ),
]
"""Rules on snippets: the rule, the module in which each stands, what it refuses there, and what it accepts."""


class RuleTests(SynchronousTestCase):
    """What each rule catches."""

    def test_snippets(self) -> None:
        """Each rule refuses what breaks it, and nothing that looks like it."""
        for rule, name, refused, accepted in _TRIED:
            for text in (*refused, *accepted):
                found = list(rule(Source(name, text)))
                self.assertEqual(bool(found), text in refused, f"{rule.__name__} in {name}: {text!r}: {found}")
        self.assertEqual({rule for rule, *_ in _TRIED}, {*_IN_PACKAGE, *_EVERYWHERE})

    def test_package_door(self) -> None:
        """A relative import in a package's door stays in its room."""
        door = Source("aileron.runner", "from ._machine import Machine", is_package=True)
        self.assertEqual(list(rules.arrows(door)), [])

    def test_every_part(self) -> None:
        """The table of layers names the packages and public modules that are there."""
        for room, parts in rules.LAYERS.items():
            inside = [source.name.removeprefix(f"{room}.") for source in _PACKAGE if source.name.startswith(f"{room}.")]
            self.assertEqual({name.split(".")[0] for name in inside if not name.startswith("_")}, set(parts))
