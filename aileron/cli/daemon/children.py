"""Commands of ours that run as children in the same terminal."""

from __future__ import annotations

import site
import socket
import subprocess
import sys
from pathlib import Path

from aileron.cli._surroundings import Surroundings


def command(*arguments: str) -> tuple[str, ...]:
    """How this very program is run once more."""
    return (*isolated(), "-m", "aileron", *arguments)


def isolated(executable: str = sys.executable, package: Path | None = None) -> tuple[str, ...]:
    """Python, deaf to its environment and to the directory that it is started in.

    :param package: where this package lies; below the user's own site directory C{-I} would not find it.
    """
    here = package or Path(__file__).parent
    in_user_site = here.is_relative_to(site.getusersitepackages())
    return (executable, "-E", "-P") if in_user_site else (executable, "-I")


def private_pair() -> tuple[int, int]:
    """Two descriptors, to read what is written to the other, one of them for a child.

    A child cannot close itself to other processes of the user before it runs.  Until then they may open its pipes anew,
    from C{/proc}, and read in its place; a socket cannot be opened so.
    """
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()


def run_child(around: Surroundings, *arguments: str) -> bool:
    """Run one of our commands in this terminal, and tell whether it did what it should.

    Ctrl-C reaches the child as well, and ends both.
    """
    from aileron.cli._drive import interruptible

    with interruptible():
        return subprocess.run(command(*arguments), env=dict(around.environ), check=False).returncode == 0
