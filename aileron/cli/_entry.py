"""Where the C{aileron} command begins: it is the daemon, or the command line."""

from __future__ import annotations

import sys

SERVE = "serve"
"""The hidden command by which the others start the daemon."""


def main() -> None:
    """The C{aileron} command."""
    if sys.argv[1:2] == [SERVE]:
        from ._serve import serve

        sys.exit(serve(sys.argv[2:]))
    from ._main import main as command_line

    command_line()
