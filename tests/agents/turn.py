"""Whose turn it is: one agent a day beside OpenCode, so that no single run of all checks installs five."""

from __future__ import annotations

import datetime as dt
from unittest import TestSuite

from tests.agents import choice
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
    wanted = ((ALWAYS, MISSING), (today(), FEW))
    return TestSuite(test for agent, names in wanted for test in choice.scenarios(agent, names.__contains__))


if __name__ == "__main__":
    print(today())
