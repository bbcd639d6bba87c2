"""Whose turn it is: one agent a day beside OpenCode, so that no single run of all checks installs five.

``python -m tests.agents.turn DIRECTORY`` installs today's, ``trial tests.installed`` tries a few scenarios with it.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import TestCase

from tests.agents.install import AGENTS, install
from tests.functional.install import place

ALWAYS = "opencode"
FEW = ("02_approved_in_time",)
# What ``python3 -m tests --all`` tries besides; of OpenCode, what tests.functional does not do with it already.
MISSING = ("05_edited", "06_daemon_restarted", "07_action_added", "10_two_at_once", "egress")
MORE = ("01_ungated", "04_denied", "09_unicode", "egress")
_NOTE = "turn.txt"


def of(day: dt.date) -> str:
    """The agent of a day: each in its turn, in the order of their names."""
    others = [name for name in AGENTS if name != ALWAYS]
    return others[day.toordinal() % len(others)]


def today() -> str:
    """The agent of this day, by universal time."""
    return of(dt.datetime.now(dt.UTC).date())


def installed(directory: Path) -> str:
    """The agent whose turn it was when one was installed there, should midnight have passed since; else today's."""
    note = directory / _NOTE
    return note.read_text() if note.exists() else today()


def scenarios(more: bool) -> Iterator[TestCase]:
    """The main scenario of the agent whose turn it is; a few more, and some of OpenCode's, if they are wanted."""
    from tests.agents import choice

    yield from choice.scenarios(installed(place()), (FEW + MORE * more).__contains__)
    if more:
        yield from choice.scenarios(ALWAYS, MISSING.__contains__)


def main() -> None:
    """Install it below the directory named on the command line; print its program."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.agents.turn DIRECTORY")
    directory, agent = Path(sys.argv[1]).absolute(), today()
    print(install(directory, agent))
    (directory / _NOTE).write_text(agent)


if __name__ == "__main__":
    main()
