"""A life that cannot start ends the process, whenever it learns so."""

import errno
import io
import sys
from collections.abc import Callable

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._life import AileronService
from aileron.model.errors import Conflict


class Loop:
    """As much of a reactor as a start needs.

    :ivar stops: how often it was stopped.
    """

    def __init__(self) -> None:
        self.running = False
        self.stops = 0
        self._waiting: list[Callable[[], None]] = []

    def callWhenRunning(self, call: Callable[[], None]) -> None:
        """Call at once, or when it runs."""
        if self.running:
            call()
        else:
            self._waiting.append(call)

    def run(self) -> None:
        """Run from now on."""
        self.running = True
        for call in self._waiting:
            call()

    def stop(self) -> None:
        """Run no more."""
        self.running = False
        self.stops += 1


class FailedStartTests(SynchronousTestCase):
    """The reactor, before and while it runs."""

    def setUp(self) -> None:
        self.reactor = Loop()
        self.said = io.StringIO()
        self.patch(sys, "stderr", self.said)

    def assert_stopped(self, service: AileronService) -> None:
        """The failure was told, logged, and ended the reactor."""
        self.assertEqual(self.reactor.stops, 1)
        self.assertIsInstance(service.failed, Failure)
        self.assertIn("cannot start", self.said.getvalue())
        self.assertEqual(len(self.flushLoggedErrors(Conflict)), 1)

    def test_before_the_reactor_runs(self) -> None:
        """A start that fails before the reactor runs ends it as soon as it does."""
        service = AileronService(self.reactor, lambda _: fail(Conflict("Another daemon serves it.")))
        service.startService()
        self.assertEqual(self.reactor.stops, 0)
        self.reactor.run()
        self.assert_stopped(service)

    def test_nowhere_to_say(self) -> None:
        """A start that fails where nothing can be written, as on a full disk, ends the reactor all the same."""

        class Full(io.StringIO):
            def write(self, _: str) -> int:
                raise OSError(errno.ENOSPC, "No space left on device")

        self.patch(sys, "stderr", Full())
        self.reactor.run()
        service = AileronService(self.reactor, lambda _: fail(Conflict("The disk is full.")))
        service.startService()
        self.assertEqual((self.reactor.stops, len(self.flushLoggedErrors(Conflict))), (1, 1))

    def test_while_it_runs(self) -> None:
        """A start that fails later ends the reactor at once."""
        starting: Deferred[None] = Deferred()
        service = AileronService(self.reactor, lambda _: starting)
        service.startService()
        self.reactor.run()
        self.assertEqual(self.reactor.stops, 0)
        starting.errback(Conflict("A port is taken."))
        self.assert_stopped(service)
