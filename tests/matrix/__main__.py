"""C{python -m tests.matrix [crash | races] [count] [--seed S]}: the table; it fails where a promise was broken.

C{count}: how often the daemon is killed, 1,000 times unless told; or how many orders of each race are tried.
"""

from __future__ import annotations

import argparse
import sys

from tests.matrix.crash.matrix import crash
from tests.matrix.races.report import MOST, report

KILLS = 1000


def main(arguments: list[str]) -> int:
    """Try, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("part", nargs="?", default="crash", choices=("crash", "races"))
    parser.add_argument("count", nargs="?", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=2)
    given = parser.parse_args(arguments)
    if given.part == "races":
        return max([_told(*each) for each in report(given.count or MOST)])
    tally = crash(given.count or KILLS, given.seed, given.together)
    print("\n".join(tally.lines()))
    return 1 if tally.faults else 0


def _told(line: str, broken: bool) -> int:
    print(line, flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
