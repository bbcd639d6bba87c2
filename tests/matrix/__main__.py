"""C{python -m tests.matrix [crash] [kills] [--seed S]}: the table; it fails where a promise was broken."""

from __future__ import annotations

import argparse
import sys

from tests.matrix.crash.matrix import crash


def main(arguments: list[str]) -> int:
    """Try, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("part", nargs="?", default="crash", choices=("crash",))
    parser.add_argument("kills", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=2)
    given = parser.parse_args(arguments)
    tally = crash(given.kills, given.seed, given.together)
    print("\n".join(tally.lines()))
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
