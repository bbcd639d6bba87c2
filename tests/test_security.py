"""Each claim of doc/attacks.md names tests that exist, each attack test is named there, and SECURITY.md is short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

_TESTS = Path(__file__).parent
_PAGE = _TESTS.parent / "doc" / "attacks.md"
_POLICY = _TESTS.parent / "SECURITY.md"
_POLICY_WORDS = 1200
_ROW = re.compile(r"^\| (?P<deed>.*?) \| (?P<outcome>.*?) \| (?P<tests>.*?) \|$", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_HEADS = ("What happens", "What it prevents")
_NOT_STOPPED = "**No**"


@frozen
class Line:
    """One line of a table.

    :ivar tests: what it names.
    """

    deed: str
    outcome: str
    tests: tuple[str, ...]


def lines(page: str) -> list[Line]:
    """The lines of all tables, their heads apart."""
    found = (Line(row["deed"], row["outcome"], tuple(_NAME.findall(row["tests"]))) for row in _ROW.finditer(page))
    return [line for line in found if not line.deed.startswith("-") and line.outcome not in _HEADS]


def file_of(module: str) -> Path:
    """Where the tests of a module are, as the page writes it: of the attacks, where no room is named."""
    room, _, name = module.rpartition("/")
    places = [_TESTS / room] if room else [_TESTS / "attacks", _TESTS]
    return next((path for place in places if (path := place / f"test_{name}.py").exists()), places[0] / module)


def tests_in(path: Path) -> Iterator[str]:
    """The classes of a file, and each test in them, as C{Class} and C{Class.test}."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else ():
        if isinstance(node, ast.ClassDef):
            yield node.name
            methods = [each.name for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
            yield from (f"{node.name}.{method}" for method in methods if method.startswith("test"))


def exists(name: str) -> bool:
    """Whether there is a test, or a class of tests, of that name."""
    module, _, inside = name.partition(".")
    return inside in tests_in(file_of(module))


class PageTests(SynchronousTestCase):
    """The page as it stands."""

    def setUp(self) -> None:
        self.lines = lines(_PAGE.read_text(encoding="utf-8"))
        self.named = {name for line in self.lines for name in line.tests}

    def test_named_exist(self) -> None:
        """Each test that it names is there."""
        self.assertGreater(len(self.lines), 50)
        self.assertEqual([name for name in sorted(self.named) if not exists(name)], [])

    def test_attacks_are_named(self) -> None:
        """Each test of an attack is named, by itself or with its class."""
        attacks = [
            f"{path.stem.removeprefix('test_')}.{test}"
            for path in sorted((_TESTS / "attacks").glob("test_*.py"))
            for test in tests_in(path)
            if "." in test
        ]
        self.assertGreater(len(attacks), 40)
        self.assertEqual([name for name in attacks if not self.named & {name, name.rpartition(".")[0]}], [])

    def test_claims_are_shown(self) -> None:
        """Whatever is said to be stopped names a test, what is not says so, and each line has three columns."""
        for line in self.lines:
            if not line.outcome.startswith(_NOT_STOPPED):
                self.assertTrue(line.tests, line.deed)
        rows = [row for row in _PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
        heads = [row for row in rows if any(head in row for head in _HEADS)]
        self.assertEqual(len(rows), len(heads) + len(self.lines))


class PolicyTests(SynchronousTestCase):
    """SECURITY.md."""

    def test_short(self) -> None:
        """SECURITY.md is short, and leads to the page of attacks and to each page that it names."""
        policy = _POLICY.read_text(encoding="utf-8")
        self.assertLessEqual(len(policy.split()), _POLICY_WORDS)
        linked = re.findall(r"\]\(([^)#]+)", policy)
        self.assertIn("doc/attacks.md", linked)
        self.assertEqual([link for link in linked if not (_POLICY.parent / link).exists()], [])


class ReadingTests(SynchronousTestCase):
    """How it is read."""

    def test_exists(self) -> None:
        """A test is found by module, class and name; what is not there is not."""
        self.assertTrue(exists("security.ReadingTests.test_exists"))
        self.assertTrue(exists("files.ActionFileTests"))
        self.assertFalse(exists("files.ActionFileTests.test_nothing"))
        self.assertFalse(exists("nowhere.ActionFileTests"))
        self.assertFalse(exists("files"))
