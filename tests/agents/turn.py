"""Whose turn it is: one agent a day beside OpenCode, so that no single run of all checks installs five."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator
from unittest import TestCase, TestSuite

from twisted.trial.runner import TestLoader

from tests.agents.install import AGENTS

ALWAYS = "opencode"
MISSING = ("05_edited", "07_action_added", "10_two_at_once")  # what tests.functional does not do with it already
FEW = ("01_ungated", "02_approved_in_time", "04_denied", "09_unicode")


def of(day: dt.date) -> str:
    """The agent of a day: each in its turn, in the order of their names."""
    others = [name for name in AGENTS if name != ALWAYS]
    return others[day.toordinal() % len(others)]


def today() -> str:
    """The agent of this day, by universal time."""
    return of(dt.datetime.now(dt.UTC).date())


def test_suite() -> TestSuite:
    """Collect a few scenarios of OpenCode and of today's agent; trial calls this by its name."""
    return TestSuite([*_scenarios(ALWAYS, MISSING), *_scenarios(today(), FEW)])


def _scenarios(agent: str, names: Collection[str]) -> Iterator[TestCase]:
    module = f"tests.agents.test_{agent}"
    for test in _each(TestLoader().loadByName(module)):
        if test.id().rpartition(".test_")[2] in names:
            yield test


def _each(suite: TestSuite) -> Iterator[TestCase]:
    for test in suite:
        if isinstance(test, TestSuite):
            yield from _each(test)
        else:
            yield test


if __name__ == "__main__":
    print(today())
