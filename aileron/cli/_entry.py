"""The entry point of the C{aileron} command: it runs the daemon or the command line.

The daemon stays in memory, so of the command line it loads only this module.
"""

from __future__ import annotations

import gc
import linecache
import sys
from collections.abc import Sequence
from typing import Any

from aileron.hardening import harden

SERVE = "serve"
"""The hidden command by which other commands start the daemon."""
_YOUNG, _MIDDLE = 10_000, 100


def main() -> None:
    """Run the daemon or the command line.

    Loading creates little garbage: collecting at every 700 objects, Python's default, took a tenth of a command's time
    and a fifth of the daemon's start. Without any collection the half-made classes of attrs would stay in the daemon,
    so only the youngest generation is collected.
    """
    gc.set_threshold(_YOUNG, _MIDDLE)
    if sys.argv[1:2] == [SERVE]:
        sys.exit(serve(sys.argv[2:]))
    from ._main import main as command_line

    command_line()


class _Sources(dict[str, Any]):
    """The store of source lines that C{traceback} reads (C{linecache}), without those of methods that attrs generates.

    More than three hundred classes have such methods, with 1.5 MB of source lines.
    """

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        """Discard the lines, since only attrs adds lines with this method.

        Return the earlier lines of C{key}, or C{default}.
        """
        return self.get(key, default)


def serve(arguments: Sequence[str]) -> int:
    """Run the daemon until a signal ends it.

    :param arguments: its options.
    :return: the exit status. If the daemon could not start, the reason is on standard error.
    """
    harden()  # before the key or anything else is in memory
    linecache.cache = _Sources(linecache.cache)
    try:
        from aileron.daemon import serve as serve_until_stopped

        return serve_until_stopped(arguments)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a rim: never a traceback
        from .errors import report

        return report(error)
