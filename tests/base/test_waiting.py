"""Many wait for one thing and are all told, unless they left; one gives up, at once and in one way."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.waiting import Waiting, given_up_at_once


class WaitingTests(SynchronousTestCase):
    """L{Waiting}."""

    def setUp(self) -> None:
        self.waiting = Waiting()

    def test_told(self) -> None:
        """Everyone is told, in the order of their coming; where there is nothing to wait for, nobody waits."""
        told: list[str] = []
        self.waiting.wait(over=False).addCallback(lambda _: told.append("first"))
        self.waiting.wait(over=False).addCallback(lambda _: told.append("second"))
        self.assertEqual(told, [])
        self.waiting.fire()
        self.assertEqual(told, ["first", "second"])
        self.assertIsNone(self.successResultOf(self.waiting.wait(over=True)))

    def test_again(self) -> None:
        """Each is told once; who comes while others are told waits for the next time."""
        later: list[Deferred[None]] = []
        self.waiting.wait(over=False).addCallback(lambda _: later.append(self.waiting.wait(over=False)))
        self.waiting.fire()
        self.assertNoResult(later[0])
        self.waiting.fire()
        self.assertIsNone(self.successResultOf(later[0]))

    def test_cancelled_by_another(self) -> None:
        """Who is sent away is not told and not kept, and the rest still are."""
        first, second, third = (self.waiting.wait(over=False) for _ in range(3))
        first.addCallback(lambda _: second.cancel())
        self.waiting.fire()
        self.failureResultOf(second, CancelledError)
        self.assertIsNone(self.successResultOf(third))
        waiter = self.waiting.wait(over=False)
        waiter.cancel()
        self.failureResultOf(waiter, CancelledError)
        self.assertEqual(self.waiting._all, [])


class GivenUpTests(SynchronousTestCase):
    """One who may give up."""

    def test_outcome(self) -> None:
        """What comes of it is passed on, good or bad."""
        good: Deferred[int] = Deferred()
        bad: Deferred[int] = Deferred()
        waiting = given_up_at_once(good), given_up_at_once(bad)
        for outer in waiting:
            self.assertNoResult(outer)
        good.callback(1)
        bad.errback(ValueError())
        self.assertEqual(self.successResultOf(waiting[0]), 1)
        self.failureResultOf(waiting[1], ValueError)

    def test_cancelled(self) -> None:
        """Cancelling fails at once, in one way, whatever the inside makes of it, and the inside learns of it after."""
        heard: list[str] = []
        for cancel in (
            lambda inner: inner.callback(1),
            lambda inner: inner.errback(ValueError()),
            lambda _: heard.append("in"),
        ):
            outer: Deferred[int] = given_up_at_once(Deferred(cancel), lambda: heard.append("first"))
            outer.cancel()
            self.failureResultOf(outer, CancelledError)
        self.assertEqual(heard, ["first", "first", "first", "in"])
