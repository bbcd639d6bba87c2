"""The daemon, in the foreground: what the hidden command runs by which the others start it.

It stays in memory, so it loads of the command line only this.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

from aileron.hardening import harden


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
        from aileron.cli._errors import report

        return report(error)
