"""The beginning of the C{aileron} command: it is the daemon, or the command line.

The daemon stays in memory, so it loads of the command line only this.
"""

from __future__ import annotations

import gc
import linecache
import sys
from collections.abc import Sequence
from typing import Any

from aileron.hardening import harden

SERVE = "serve"
"""The hidden command by which the others start the daemon."""
_YOUNG, _MIDDLE = 10_000, 100


def main() -> None:
    """Be the daemon, or the command line.

    Loading makes little garbage: looking for it at every 700 objects, as Python does, took a tenth of a command's time
    and a fifth of the daemon's start.  Never looking would leave the daemon the half-made classes of attrs for good;
    to look among what is new alone finds them.
    """
    gc.set_threshold(_YOUNG, _MIDDLE)
    if sys.argv[1:2] == [SERVE]:
        sys.exit(serve(sys.argv[2:]))
    from ._main import main as command_line

    command_line()


class _Sources(dict[str, Any]):
    """Lines of source, for tracebacks, without those of methods that attrs wrote: it leaves them here for debuggers.

    There are more than three hundred classes of that kind, and one and a half megabytes of their lines.
    """

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        """Remember nothing: only attrs adds lines in this way."""
        return self.get(key, default)


def serve(arguments: Sequence[str]) -> int:
    """Be the daemon until a signal ends it.

    :param arguments: its options.
    :return: the exit status; where it could not begin, standard error says why, as of any command.
    """
    harden()  # before anything else, the key above all, is in memory
    linecache.cache = _Sources(linecache.cache)
    try:
        from aileron.daemon import serve as serve_until_stopped

        return serve_until_stopped(arguments)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a rim: never a traceback
        from .errors import report

        return report(error)
