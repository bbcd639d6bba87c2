"""The tests of installed programs under one name: ``trial tests.installed``.

Those marked `seldom` are left out unless ``$AILERON_TESTS`` is ``all``, as ``python3 -m tests --all`` sets it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from unittest import TestCase, TestSuite

from twisted.trial.runner import TestLoader

from tests.__main__ import VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

_ROOMS = ["tests.functional", "tests.attacks"]


def seldom(test: F) -> F:
    """Leave a test to ``--all``: it takes long, and a quicker one has the everyday part of its promise."""
    vars(test)["seldom"] = True
    return test


def is_all() -> bool:
    """Whether everything is wanted, as ``python3 -m tests --all`` says."""
    return os.environ.get(VARIABLE) == "all"


def test_suite() -> TestSuite:
    """Collect the tests; trial calls this by its name."""
    from tests.agents import turn

    loaded = each_test(TestLoader().loadByNames(_ROOMS, recurse=True))
    rooms = (test for test in loaded if is_all() or not is_seldom(test))
    return TestSuite([*rooms, *turn.scenarios(is_all())])


def is_seldom(test: TestCase) -> bool:
    """Whether a test is marked so."""
    return hasattr(getattr(test, test.id().rpartition(".")[2], None), "seldom")


def each_test(suite: TestSuite) -> Iterator[TestCase]:
    """The tests of a suite and of the suites in it."""
    for test in suite:
        if isinstance(test, TestSuite):
            yield from each_test(test)
        else:
            yield test
