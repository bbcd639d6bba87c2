"""The command's first moments, before anything heavy is loaded."""

from __future__ import annotations

import gc
import os
import signal

_YOUNG = 10_000
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """Serve until standard input ends, standard output breaks, or a signal comes; the status is 0 then."""
    for number in _STOP_SIGNALS:
        # Loading takes half a second; until the reactor runs there is nothing to clean up.
        signal.signal(number, lambda _number, _frame: os._exit(0))
    gc.disable()  # loading makes no garbage
    from ._process import serve

    gc.freeze()
    gc.set_threshold(_YOUNG)  # nearly all that a call makes goes with its last reference
    gc.enable()
    serve(os.environ, _STOP_SIGNALS)
    # Nothing is left to clean up, and taking the interpreter apart would take most of the second that we have.
    os._exit(0)
