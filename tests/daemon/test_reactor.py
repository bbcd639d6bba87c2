"""The daemon's own reactor does what Twisted's does."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReadDescriptor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

LINUX = sys.platform == "linux"

if LINUX:
    from aileron.daemon._reactor import LeanReactor


@implementer(IReadDescriptor)
class Reader:
    """The reading end of a pipe."""

    def __init__(self, descriptor: int, error: Exception | None) -> None:
        self.read: list[bytes] = []
        self.lost: list[Failure] = []
        self._descriptor = descriptor
        self._error = error

    def fileno(self) -> int:
        """See L{IReadDescriptor}."""
        return self._descriptor

    def doRead(self) -> Any:
        """See L{IReadDescriptor}."""
        if self._error is not None:
            raise self._error
        self.read.append(os.read(self._descriptor, 100))
        return None if self.read[-1] else ConnectionDone()

    def connectionLost(self, reason: Failure) -> None:
        """See L{IReadDescriptor}."""
        self.lost.append(reason)

    def logPrefix(self) -> str:
        """See L{IReadDescriptor}."""
        return "reader"


class LeanReactorTests(SynchronousTestCase):
    """What it makes of events."""

    skip = None if LINUX else "there is no epoll"

    def setUp(self) -> None:
        """A reactor that is nobody's, and a pipe."""
        self.reactor: Any = cast(Any, LeanReactor)()
        self.near, self.far = os.pipe()
        self.addCleanup(os.close, self.near)
        self.addCleanup(self.reactor.removeAll)

    def reader(self, error: Exception | None = None) -> Reader:
        """A reader that the reactor looks after."""
        reader = Reader(self.near, error)
        self.reactor.addReader(reader)
        return reader

    def test_reads(self) -> None:
        """What is there is read, once."""
        reader = self.reader()
        os.write(self.far, b"a")
        self.reactor.doIteration(0)
        self.reactor.doIteration(0)
        self.assertEqual((reader.read, reader.lost), ([b"a"], []))
        os.close(self.far)

    def test_end(self) -> None:
        """Whoever has ended is told so and looked after no more."""
        reader = self.reader()
        os.close(self.far)
        self.reactor.doIteration(0)
        self.assertEqual(len(reader.lost), 1)
        self.assertNotIn(reader, self.reactor.getReaders())

    def test_failure(self) -> None:
        """Whoever fails is dropped, and the log says why; the others are not in it."""
        reader = self.reader(ZeroDivisionError())
        os.write(self.far, b"a")
        self.reactor.doIteration(0)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertIsNotNone(reader.lost[0].check(ZeroDivisionError))
        os.close(self.far)
