"""The daemon's own reactor does what Twisted's does, and measures its turns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from twisted.internet.error import ConnectionDone, ReactorNotRunning
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

    def __init__(self, descriptor: int, error: Exception | None, then: Callable[[], object] = lambda: None) -> None:
        self.read: list[bytes] = []
        self.lost: list[Failure] = []
        self._descriptor = descriptor
        self._error = error
        self._then = then

    def fileno(self) -> int:
        return self._descriptor

    def doRead(self) -> Any:
        if self._error is not None:
            raise self._error
        self.read.append(os.read(self._descriptor, 100))
        self._then()
        return None if self.read[-1] else ConnectionDone()

    def connectionLost(self, reason: Failure) -> None:
        """Keep the reason."""
        self.lost.append(reason)

    def logPrefix(self) -> str:
        return "reader"


class EventTests(SynchronousTestCase):
    """What the reactor makes of events."""

    skip = None if LINUX else "there is no epoll"

    def setUp(self) -> None:
        """Make a reactor that nobody else uses, and a pipe."""
        self.reactor: Any = cast(Any, LeanReactor)()
        self.near, self.far = os.pipe()
        self.addCleanup(os.close, self.near)
        self.addCleanup(self.reactor.removeAll)

    def reader(self, error: Exception | None = None) -> Reader:
        """Return a reader that was added to the reactor."""
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
        """A reader whose other end has closed is told so and removed."""
        reader = self.reader()
        os.close(self.far)
        self.reactor.doIteration(0)
        self.assertEqual(len(reader.lost), 1)
        self.assertNotIn(reader, self.reactor.getReaders())

    def test_removed_meanwhile(self) -> None:
        """A reader that another one of the same turn removed is not read."""
        other, far = os.pipe()
        self.addCleanup(os.close, other)
        self.addCleanup(os.close, far)
        readers = [Reader(self.near, None), Reader(other, None)]
        for reader, rest in (readers, readers[::-1]):
            reader._then = partial(self.reactor.removeReader, rest)
            self.reactor.addReader(reader)
        os.write(self.far, b"a")
        os.write(far, b"a")
        self.reactor.doIteration(0)
        self.assertEqual(sorted(len(reader.read) for reader in readers), [0, 1])
        os.close(self.far)

    def test_failure(self) -> None:
        """A reader that fails is disconnected, and the log says why."""
        reader = self.reader(ZeroDivisionError())
        os.write(self.far, b"a")
        self.reactor.doIteration(0)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertIsNotNone(reader.lost[0].check(ZeroDivisionError))
        os.close(self.far)


class LoopTests(SynchronousTestCase):
    """What happens between events: each of these ends the loop, or a call that comes too late does."""

    skip = EventTests.skip

    def setUp(self) -> None:
        """Make a reactor, a pipe with something in it, and a call that ends the loop late."""
        self.reactor: Any = cast(Any, LeanReactor)()
        self.late = False
        self.near, self.far = os.pipe()
        self.addCleanup(os.close, self.near)
        self.addCleanup(os.close, self.far)
        self.addCleanup(self.reactor.removeAll)
        self.last = self.reactor.callLater(30.0, self.end_late)

    def end_late(self) -> None:
        """Note that nothing else has ended it."""
        self.late = True
        self.reactor.crash()

    def run_with(self, then: Callable[[], object]) -> Reader:
        """Run until the loop ends; C{then} is called from within the event that is waiting."""
        reader = Reader(self.near, None, then)
        os.write(self.far, b"a")
        self.reactor.addReader(reader)
        self.reactor.run(installSignalHandlers=False)
        return reader

    def test_stop_twice(self) -> None:
        """A second stop, as after a second signal, does nothing; one before the start is an error."""
        self.assertRaises(ReactorNotRunning, self.reactor.stop)

        def stop() -> None:
            self.reactor.stop()
            self.reactor.stop()

        self.run_with(stop)
        self.assertFalse(self.late)

    def test_stop(self) -> None:
        """The loop ends when an event stops the reactor."""
        reader = self.run_with(self.reactor.stop)
        self.assertEqual((self.late, reader.read), (False, [b"a"]))

    def test_crash(self) -> None:
        """The loop ends when an event crashes the reactor."""
        self.run_with(self.reactor.crash)
        self.assertFalse(self.late)

    def test_call_of_an_event(self) -> None:
        """A call that an event asked for is made in time."""
        self.run_with(lambda: self.reactor.callLater(0.01, self.reactor.crash))
        self.assertFalse(self.late)

    def test_call_made_sooner(self) -> None:
        """A call that an event has put forward is made in time."""
        then = self.reactor.callLater(25.0, self.reactor.crash)
        self.last.reset(20.0)
        self.run_with(lambda: then.reset(0.01))
        self.assertFalse(self.late)

    def test_call_of_a_thread(self) -> None:
        """A call from another thread is made in time."""
        self.run_with(lambda: self.reactor.callFromThread(self.reactor.crash))
        self.assertFalse(self.late)

    def test_calls_between_events(self) -> None:
        """Events that never cease keep no call from being made."""
        self.reactor.callLater(0.01, self.reactor.crash)
        reader = self.run_with(lambda: os.write(self.far, b"a"))
        self.assertFalse(self.late)
        self.assertGreater(len(reader.read), 1)

    def test_failing_call(self) -> None:
        """A call that fails is logged, and the loop goes on."""
        self.reactor.callLater(0, lambda: 1 // 0)
        self.run_with(lambda: self.reactor.callLater(0.01, self.reactor.crash))
        self.assertEqual((self.late, len(self.flushLoggedErrors(ZeroDivisionError))), (False, 1))

    def test_failing_loop(self) -> None:
        """What fails outside any event or call is logged, and the loop goes on."""
        patience = self.reactor._patience
        self.patch(self.reactor, "_patience", lambda: (self.patch(self.reactor, "_patience", patience), 1 // 0))
        self.run_with(lambda: self.reactor.callLater(0.01, self.reactor.crash))
        self.assertEqual((self.late, len(self.flushLoggedErrors(ZeroDivisionError))), (False, 1))


class TurnTests(SynchronousTestCase):
    """What the reactor measures of its turns."""

    skip = EventTests.skip

    def test_measured(self) -> None:
        """A turn lasts from one look for events to the next: the events, and the calls that were due."""
        reactor: Any = cast(Any, LeanReactor)()
        told: list[float] = []
        now = [1.0]

        def last(seconds: float) -> None:
            now[0] += seconds

        reactor.turns.monotonic = lambda: now[0]
        near, far = os.pipe()
        self.addCleanup(os.close, near)
        self.addCleanup(os.close, far)
        self.addCleanup(reactor.removeAll)
        reactor.addReader(Reader(near, None, lambda: last(5.0)))
        reactor.callWhenRunning(lambda: reactor.turns.watch(1.0, lambda lasted, computed: told.append(lasted)))
        reactor.callLater(0.01, os.write, far, b"a")
        reactor.callLater(0.02, last, 3.0)
        reactor.callLater(0.03, reactor.crash)
        reactor.run(installSignalHandlers=False)
        self.assertEqual(sorted(told), [3.0, 5.0])
