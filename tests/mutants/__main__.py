"""C{python -m tests.mutants [--attacks] [word…]}: the table, of all guards or of those with such a word.

With C{--attacks} of those that an attack of C{tests.attacks} must notice; they are disabled in the installed package.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .guard import ATTACKS, RELAY
from .table import ATTACKED, GUARDS
from .trying import Found, Tree, try_all, whole


def main(words: list[str]) -> int:
    """Try, and print."""
    table = GUARDS
    if words[:1] == ["--attacks"]:
        table, words = ATTACKED, words[1:]
    guards = [guard for guard in table if not words or any(word in guard.what + guard.file for word in words)]
    with tempfile.TemporaryDirectory(prefix="aileron-mutants-") as directory:
        trees = [Tree.installed()] if table is ATTACKED else [Tree.at(Path(directory) / name) for name in ("0", "1")]
        said = whole(guards, trees[0])
        if said is not None:
            print(f"The tests do not pass as they are:\n{said}")
            return 1
        print(f"{'promise':>7}  {'disabled':58}{'in':28}{'':10}red\n{'-' * 150}")
        found = [_told(each) for each in try_all(guards, trees)]
    left = [each for each in found if each.problem is not None]
    print(f"{'-' * 150}\n{len(found)} guards disabled, {len(left)} not noticed")
    return 1 if left else 0


def _told(found: Found) -> Found:
    guard = found.guard
    noticed = guard.test if found.problem is None else f"NOT NOTICED: {found.problem}"
    promise = {ATTACKS: "attack", RELAY: "relay"}.get(guard.promise, guard.promise)
    print(f"{promise:>7}  {guard.what:58}{guard.file:38}{noticed}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
