"""C{python -m tests.mutants [--attacks] [word…]}: disable all guards, or those that such a word names.

With C{--attacks} the guards that an attack of C{tests.attacks} must notice; they are disabled in the installed package.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from .guard import ATTACKS, Guard, find_guards
from .trying import ROOT, Found, Tree, try_all, whole


def main(words: list[str]) -> int:
    """Disable each guard and print what became of its test.

    Return 1 if a test still passed, or 2 if no guard is named so.
    """
    against_attack = words[:1] == ["--attacks"]
    words = words[against_attack:]
    installed = [Tree.installed()] if against_attack else []
    guards = [*_select(find_guards(installed[0].root if installed else ROOT), against_attack, words)]
    if not guards:
        kind = "guard against attacks" if against_attack else "guard"
        print(f"No {kind} has {' or '.join(map(repr, words))} in its mark or its file name.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="aileron-mutants-") as directory:
        trees = installed or [Tree.at(Path(directory) / name) for name in ("0", "1")]
        said = whole(guards, trees[0])
        if said is not None:
            print(f"The tests do not pass as they are:\n{said}")
            return 1
        print(f"{'guard':>14}  {'disabled':62}{'in':38}red\n{'-' * 150}")
        found = [_told(each) for each in try_all(guards, trees)]
    left = [each for each in found if each.problem is not None]
    print(f"{'-' * 150}\n{len(found)} guards disabled, {len(left)} not noticed")
    return 1 if left else 0


def _select(guards: Iterable[Guard], against_attack: bool, words: list[str]) -> Iterator[Guard]:
    """Return the guards against attacks, or all others, that a word names; every one of them without words."""
    return (
        guard
        for guard in guards
        if (guard.keeper == ATTACKS) == against_attack
        and (not words or any(word in f"{guard.what} {guard.files}" for word in words))
    )


def _told(found: Found) -> Found:
    guard = found.guard
    noticed = guard.test if found.problem is None else f"NOT NOTICED: {found.problem}"
    print(f"{guard.keeper:>14}  {guard.what:61} {' '.join(guard.files):37} {noticed}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
