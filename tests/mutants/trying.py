"""Disables a guard where nothing is lost, and looks whether its test notices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from attrs import frozen

import aileron

from .guard import Guard
from .marks import BadMark

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
    """A package in which anything may be broken.

    :ivar root: where it lies.
    :ivar directory: where its tests lie.
    """

    root: Path
    directory: Path

    @classmethod
    def at(cls, root: Path) -> Tree:
        """Copy the sources there."""
        hidden = shutil.ignore_patterns("__pycache__", "_trial_temp*")
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=hidden)
            else:
                shutil.copy(source, root / name)
        return cls(root, root)

    @classmethod
    def installed(cls) -> Tree:
        """The wheel of this environment, with tests in the working directory; processes of it are attacked.

        Whoever ends this by force has to make the environment anew.
        """
        root = Path(aileron.__file__).parent.parent
        if not root.is_relative_to(sys.prefix):
            raise SystemExit(f"{root} is no installed package: see the environment attack-mutants in tox.ini.")
        return cls(root, Path.cwd())

    def passes(self, tests: Sequence[str]) -> tuple[bool, str]:
        """Whether these tests pass, and what was said."""
        command = (sys.executable, "-B", "-m", "twisted.trial", "--reporter", "text", *tests)
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        if self.root == self.directory:
            environment["PYTHONPATH"] = str(self.root)
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS * len(tests),
            check=False,
        )
        return done.returncode == 0, done.stdout + done.stderr

    def try_out(self, guard: Guard) -> Found:
        """Disable one guard for as long as its test runs."""
        try:
            with guard.disabled(self.root):
                passed, said = self.passes([guard.test_id])
        except BadMark as error:
            return Found(guard, str(error))
        if passed:
            return Found(guard, "no test noticed")
        return Found(guard, None if "Ran " in said and "Ran 0" not in said else f"the test did not run: {said[-300:]}")


def try_all(guards: Sequence[Guard], trees: Sequence[Tree]) -> Iterator[Found]:
    """Try each guard, as many at once as there are trees, and return the results in the same order."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(guard: Guard) -> Found:
        tree = free.get()
        try:
            return tree.try_out(guard)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        yield from pool.map(one, guards)


def whole(guards: Iterable[Guard], tree: Tree) -> str | None:
    """What is said where the tests do not pass with every guard in its place."""
    passed, said = tree.passes(sorted({guard.test_id for guard in guards}))
    return None if passed else said
