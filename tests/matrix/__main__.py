"""C{python -m tests.matrix [crash | daemons | tools | races | faults | machine] [count] [--seed S]}: its table.

It fails where a promise broke.

C{count}: how often the daemon is killed, or the machine plays, 1,000 times unless told; how many orders of each
race are tried at most, or how often the daemon is killed shortly after a point while a tool's write is there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.matrix.crash.matrix import crash
from tests.matrix.daemons.trial import strike_daemons
from tests.matrix.faults import small
from tests.matrix.faults.matrix import strike
from tests.matrix.machine import EXAMPLES, play
from tests.matrix.races.report import MOST, MOST_OF_TWO, report
from tests.matrix.tools.matrix import strike_tools

KILLS = 1000
KILLS_OF_TOOLS = 20
KILLS_OF_DAEMONS = 100


def main(arguments: list[str]) -> int:
    """Try, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument(
        "part", nargs="?", default="crash", choices=("crash", "daemons", "tools", "races", "faults", "machine")
    )
    parser.add_argument("count", nargs="?", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=2)
    parser.add_argument("--only", default="", help="of the faults and of tools: those whose name holds it")
    given = parser.parse_args(arguments)
    if given.part == "races":
        return max([_told(*each) for each in report(given.count or MOST, given.count or MOST_OF_TWO)])
    if given.part == "faults" and small.is_needed():
        return small.run_again(arguments)
    if given.part == "faults":
        sheet = strike(given.only, given.seed)
        print("\n".join(sheet.lines()))
        return 1 if sheet.faults else 0
    if given.part == "machine":
        return max([_told(*each) for each in play(given.count or EXAMPLES, given.seed)])
    if given.part == "tools":
        lines, broken = strike_tools(KILLS_OF_TOOLS if given.count is None else given.count, given.seed, given.only)
        return max([_told(line, broken) for line in lines])
    if given.part == "daemons":
        with tempfile.TemporaryDirectory(prefix="aileron-daemons-", dir="/tmp") as directory:
            tally = strike_daemons(given.count or KILLS_OF_DAEMONS, given.seed, Path(directory).resolve())
            print("\n".join(tally.lines()))
            return 1 if tally.faults else 0
    tally = crash(given.count or KILLS, given.seed, given.together)
    print("\n".join(tally.lines()))
    return 1 if tally.faults else 0


def _told(line: str, broken: bool) -> int:
    print(line, flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
