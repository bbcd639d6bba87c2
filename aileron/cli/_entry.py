"""Where the C{aileron} command begins: it is the daemon, or the command line."""

from __future__ import annotations

import gc
import sys

SERVE = "serve"
"""The hidden command by which the others start the daemon."""
_YOUNG, _MIDDLE = 10_000, 100


def main() -> None:
    """The C{aileron} command.

    Loading makes little garbage: looking for it at every 700 objects, as Python does, took a tenth of a command's time
    and a fifth of the daemon's start.  Never looking would leave the daemon the half-made classes of attrs for good;
    to look among what is new alone finds them.
    """
    gc.set_threshold(_YOUNG, _MIDDLE)
    if sys.argv[1:2] == [SERVE]:
        from .daemon.serve import serve

        sys.exit(serve(sys.argv[2:]))
    from ._main import main as command_line

    command_line()
