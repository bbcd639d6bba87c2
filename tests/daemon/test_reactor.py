"""The daemon's reactor measures its turns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, cast

from twisted.internet.interfaces import IReadDescriptor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

LINUX = sys.platform == "linux"

if LINUX:
    from aileron.daemon._reactor import MeasuredReactor


@implementer(IReadDescriptor)
class Reader:
    """The reading end of a pipe."""

    def __init__(self, descriptor: int, then: Callable[[], object]) -> None:
        self._descriptor = descriptor
        self._then = then

    def fileno(self) -> int:
        """See L{IReadDescriptor}."""
        return self._descriptor

    def doRead(self) -> None:
        """See L{IReadDescriptor}."""
        os.read(self._descriptor, 100)
        self._then()

    def connectionLost(self, reason: Failure) -> None:
        """See L{IReadDescriptor}."""

    def logPrefix(self) -> str:
        """See L{IReadDescriptor}."""
        return "reader"


class TurnTests(SynchronousTestCase):
    """What it measures of its turns."""

    skip = None if LINUX else "there is no epoll"

    def test_measured(self) -> None:
        """A turn lasts from one look for events to the next: the events, and the calls that were due."""
        reactor: Any = cast(Any, MeasuredReactor)()
        told: list[float] = []
        now = [1.0]

        def last(seconds: float) -> None:
            now[0] += seconds

        reactor.turns.monotonic = lambda: now[0]
        near, far = os.pipe()
        self.addCleanup(os.close, near)
        self.addCleanup(os.close, far)
        self.addCleanup(reactor.removeAll)
        reactor.addReader(Reader(near, lambda: last(5.0)))
        reactor.callWhenRunning(lambda: reactor.turns.watch(1.0, lambda lasted, computed: told.append(lasted)))
        reactor.callLater(0.01, os.write, far, b"a")
        reactor.callLater(0.02, last, 3.0)
        reactor.callLater(0.03, reactor.crash)
        reactor.run(installSignalHandlers=False)
        self.assertEqual(told, [5.0, 3.0])
