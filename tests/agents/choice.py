"""Which agents have scenarios, and those of one agent that are wanted."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from unittest import TestCase

from twisted.trial.runner import TestLoader

import tests.agents
from tests.agents.kind import Kind
from tests.installed import each_test


def agents() -> list[str]:
    """The names of those that have scenarios."""
    names = (module.name for module in pkgutil.iter_modules(tests.agents.__path__))
    return [name.removeprefix("test_") for name in names if name.startswith("test_")]


def kind(agent: str) -> Kind:
    """What the scenarios know of it."""
    classes = vars(import_module(_module(agent))).values()
    found = (getattr(each, "kind", None) for each in classes)
    return next(each for each in found if isinstance(each, Kind))


def scenarios(agent: str, wanted: Callable[[str], bool]) -> Iterator[TestCase]:
    """Its tests of scenarios.

    :param wanted: of a name such as ``07_action_added``.
    """
    for test in each_test(TestLoader().loadByName(_module(agent))):
        if wanted(test.id().rpartition(".test_")[2]):
            yield test


def _module(agent: str) -> str:
    return f"tests.agents.test_{agent}"
