"""C{python -m tests.agents [NAME …]}: the agents through all scenarios, and the table; it fails where one failed.

All that have scenarios unless some are named. C{--only 07 --only unicode}: scenarios whose names hold one of these.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from unittest import TestSuite

from twisted.trial.runner import TrialRunner

from tests.agents import choice
from tests.agents.install import install, place
from tests.agents.sheet import Sheet, SheetReporter
from tests.functional.install import install_tmux


def main(arguments: list[str]) -> int:
    """Try, and print."""
    there = choice.agents()
    parser = argparse.ArgumentParser(prog="python -m tests.agents")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(there)}")
    parser.add_argument("--only", action="append", metavar="WORD", help="scenarios with it in their names; repeatable")
    parser.add_argument("--install", action="store_true", help="install tmux, and them into this environment")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(there):
        parser.error(f"no such agents: {', '.join(unknown)}")
    if given.install:
        install_tmux()
        for name in given.names or there:
            install(place(), name)
    kinds = {name: choice.kind(name) for name in given.names or there}
    for kind in kinds.values():
        kind.program()  # what is missing is said before anything is tried, not after half an hour
    sheet = tried(list(kinds), given.only or [""])
    print("", *sheet.lines({name: kind.limits for name, kind in kinds.items()}), sep="\n", flush=True)
    return int(sheet.failed)


def tried(agents: list[str], words: list[str]) -> Sheet:
    """What came of the scenarios whose names hold one of these words."""
    sheet = Sheet()
    suite = TestSuite(
        test for agent in agents for test in choice.scenarios(agent, lambda name: any(word in name for word in words))
    )
    with tempfile.TemporaryDirectory(prefix="aileron-agents-") as directory:
        runner = TrialRunner(
            lambda *options: SheetReporter(sheet, *options), workingDirectory=str(Path(directory) / "trial")
        )
        runner.run(suite)
    return sheet


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
