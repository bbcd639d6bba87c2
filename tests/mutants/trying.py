"""Disables a guard in a copy of the tree, and looks whether its test notices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from attrs import frozen

from .guard import Guard

ROOT = Path(__file__).resolve().parent.parent.parent
_SECONDS = 900
_COPIED = ("aileron", "tests", "twisted", "setup.cfg")


@frozen
class Found:
    """What became of one guard.

    :ivar problem: L{None}: it was noticed.
    """

    guard: Guard
    problem: str | None


@frozen
class Tree:
    """A copy of the sources, in which anything may be broken."""

    root: Path

    @classmethod
    def at(cls, root: Path) -> Tree:
        """Copy them there."""
        hidden = shutil.ignore_patterns("__pycache__", "_trial_temp*")
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=hidden)
            else:
                shutil.copy(source, root / name)
        return cls(root)

    def passes(self, tests: Iterable[str]) -> tuple[bool, str]:
        """Whether these tests pass, and what was said."""
        command = (sys.executable, "-B", "-m", "twisted.trial", "--reporter", "text", *tests)
        environment = {**os.environ, "PYTHONPATH": str(self.root)}
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        return done.returncode == 0, done.stdout + done.stderr

    def try_out(self, guard: Guard) -> Found:
        """Disable one guard for as long as its test runs."""
        problem = guard.problem(self.root)
        if problem is not None:
            return Found(guard, problem)
        with guard.disabled(self.root):
            passed, said = self.passes([guard.test_id])
        if passed:
            return Found(guard, "no test noticed")
        return Found(guard, None if "Ran " in said and "Ran 0" not in said else f"the test did not run: {said[-300:]}")


def try_all(guards: list[Guard], directory: Path, together: int = 2) -> Iterator[Found]:
    """Try each, some at once, in copies below C{directory}; in the order of the table."""
    trees: SimpleQueue[Tree] = SimpleQueue()
    for number in range(together):
        trees.put(Tree.at(directory / str(number)))

    def one(guard: Guard) -> Found:
        tree = trees.get()
        try:
            return tree.try_out(guard)
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(together) as pool:
        yield from pool.map(one, guards)


def whole(guards: Iterable[Guard], directory: Path) -> str | None:
    """What is said where the tests do not pass with every guard in its place."""
    passed, said = Tree.at(directory / "whole").passes(sorted({guard.test_id for guard in guards}))
    return None if passed else said
