"""Whose turn it is: one agent a day beside OpenCode, so that no single run of all checks installs five.

``python -m tests.agents.turn DIRECTORY`` installs today's, ``trial tests.agents.turn`` tries a few scenarios with it.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from unittest import TestSuite

from tests.agents import choice
from tests.agents.install import install, place

ALWAYS = "opencode"
MISSING = ("05_edited", "07_action_added", "10_two_at_once")  # what tests.functional does not do with it already
FEW = ("01_ungated", "02_approved_in_time", "04_denied", "09_unicode")
_NOTE = "turn.txt"


def of(day: dt.date) -> str:
    """The agent of a day: each in its turn, in the order of their names."""
    others = [name for name in choice.agents() if name != ALWAYS]
    return others[day.toordinal() % len(others)]


def today() -> str:
    """The agent of this day, by universal time."""
    return of(dt.datetime.now(dt.UTC).date())


def installed(directory: Path) -> str:
    """The agent whose turn it was when one was installed there, should midnight have passed since; else today's."""
    note = directory / _NOTE
    return note.read_text() if note.exists() else today()


def test_suite() -> TestSuite:
    """Collect a few scenarios of OpenCode and of the agent whose turn it is; trial calls this by its name."""
    wanted = ((ALWAYS, MISSING), (installed(place()), FEW))
    return TestSuite(test for agent, names in wanted for test in choice.scenarios(agent, names.__contains__))


def main() -> None:
    """Install it below the directory named on the command line; print its program."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.agents.turn DIRECTORY")
    directory, agent = Path(sys.argv[1]).absolute(), today()
    print(install(directory, agent))
    (directory / _NOTE).write_text(agent)


if __name__ == "__main__":
    main()
