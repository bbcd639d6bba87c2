"""Many wait for one thing, each with a Deferred of its own."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.scheduling import ResultWaiters


class WaitersTests(SynchronousTestCase):
    """Who is told what, and when."""

    def setUp(self) -> None:
        """Nobody waits."""
        self.clock = Clock()
        self.waiters: ResultWaiters[str, int] = ResultWaiters(self.clock)

    def wait(self, key: str, seconds: float = 5.0) -> Deferred[int | None]:
        """Begin to wait."""
        return Deferred.fromCoroutine(self.waiters.first(key, self.waiters.enlist(key), seconds))

    def test_told(self) -> None:
        """All who wait for a key are told, and nobody else."""
        first, second, other = self.wait("a"), self.wait("a"), self.wait("b")
        self.assertNoResult(first)
        self.waiters.tell("a", 7)
        self.assertEqual((self.successResultOf(first), self.successResultOf(second)), (7, 7))
        self.assertNoResult(other)

    def test_late(self) -> None:
        """Who waited long enough gets nothing, and is not told later."""
        waiting = self.wait("a", 5.0)
        self.clock.advance(4.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.2)
        self.assertIsNone(self.successResultOf(waiting))
        self.waiters.tell("a", 7)

    def test_cancelled(self) -> None:
        """Who leaves ends no other's wait and leaves no timer behind."""
        leaving, staying = self.wait("a"), self.wait("a")
        leaving.cancel()
        self.failureResultOf(leaving, CancelledError)
        self.waiters.tell("a", 7)
        self.assertEqual(self.successResultOf(staying), 7)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_news_before_the_wait(self) -> None:
        """News that comes between enlisting and waiting is not lost."""
        waiter = self.waiters.enlist("a")
        self.waiters.tell("a", 7)
        self.assertEqual(self.successResultOf(Deferred.fromCoroutine(self.waiters.first("a", waiter, 5.0))), 7)

    def test_dismissed(self) -> None:
        """Who was dismissed is not told."""
        waiter = self.waiters.enlist("a")
        self.waiters.dismiss("a", waiter)
        self.waiters.dismiss("a", waiter)
        self.waiters.tell("a", 7)
        self.assertNoResult(waiter)
