"""Every test but those of installed programs under one name: ``trial tests.unit``.

Those marked `tests.extent.seldom` are left out unless everything is wanted. Where `tests.tally` runs several processes
side by side, each takes one module after another, and loads those alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import TestCase, TestResult

from twisted.trial import _synctest
from twisted.trial.runner import TestLoader
from twisted.trial.unittest import TestSuite

from tests.extent import longest_first
from tests.installed import each_wanted
from tests.tally import TAKEN

_LONGEST = (
    "tests.matrix.",
    "tests.web.test_hostile",
    "tests.test_linear_expressions",
    "tests.test_architecture",
    "tests.test_packaging",
    "tests.test_topologies",
    "tests.connectors.test_format",
    "tests.runner.machine.",
)
_INSTALLED = ("functional", "attacks", "agents", "conformance")


# Before each test trial has three thousand modules forget which warnings they gave; since Python 3.4 they do anyway.
_synctest._setWarningRegistryToNone = lambda modules: None


def modules() -> list[str]:
    """List the modules with tests that need no installed wheel and no process, those that take longest first."""
    here = Path(__file__).parent
    paths = [path.relative_to(here).with_suffix("") for path in sorted(here.rglob("test_*.py"))]
    names = [".".join(("tests", *path.parts)) for path in paths if path.parts[0] not in _INSTALLED]
    return longest_first(names, _LONGEST, str)


class Untaken(TestSuite):
    """The tests of each module that no process beside this one has taken, which are loaded when it is their turn."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names

    def run(self, result: TestResult, debug: bool = False) -> TestResult:
        for name in self._names:
            if not result.shouldStop and _take(name):
                TestSuite(tests_of(name)).run(result)
        return result


def _take(name: str) -> bool:
    """Whether a module is this process's, as it is for whoever asks first."""
    directory = os.environ.get(TAKEN)
    if directory is None:
        return True
    try:
        Path(directory, name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def tests_of(name: str) -> Iterator[TestCase]:
    """The tests of a module that are wanted now, or its failure to be imported."""
    return each_wanted(TestLoader().loadByName(name))


def test_suite() -> TestSuite:
    """Collect those tests; trial calls this by its name."""
    return Untaken(modules())
