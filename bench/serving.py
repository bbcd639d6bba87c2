"""An endpoint on the reactor that it is measured on: C{python -m bench.serving bare|contract|noop|http [lean]}.

What is ours is served on the daemon's reactor, what it is compared to on Twisted's own, as anybody would serve it; with
C{lean} on the daemon's as well.
"""

from __future__ import annotations

import sys

from aileron.daemon import choose_reactor

OURS = ("noop", "http")


def serve(kind: str, lean: bool) -> None:
    """Serve until the input ends."""
    if lean or kind in OURS:
        choose_reactor()
    # Klein installs a reactor when it is imported.
    from twisted.internet.defer import Deferred
    from twisted.internet.task import react

    from bench.endpoint import main

    react(lambda reactor: Deferred.fromCoroutine(main(reactor, kind)))


if __name__ == "__main__":
    serve(sys.argv[1], "lean" in sys.argv[2:])
