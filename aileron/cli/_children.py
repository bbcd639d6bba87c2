"""Commands of ours that run as children in the same terminal."""

from __future__ import annotations

import subprocess
import sys

from ._surroundings import Surroundings


def command(*arguments: str) -> tuple[str, ...]:
    """How this very program is run once more."""
    return (sys.executable, "-P", "-m", "aileron", *arguments)


def run_child(around: Surroundings, *arguments: str) -> bool:
    """Run one of our commands in this terminal, and tell whether it did what it should.

    Ctrl-C reaches the child as well, and ends both.
    """
    from ._drive import interruptible

    with interruptible():
        return subprocess.run(command(*arguments), env=dict(around.environ), check=False).returncode == 0
