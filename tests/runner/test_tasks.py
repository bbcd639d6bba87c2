"""What is under way is waited for, or stopped."""

from __future__ import annotations

import contextlib

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import NotFound
from aileron.runner.scheduling import Tasks


class TasksTests(SynchronousTestCase):
    """Starting, waiting, stopping."""

    def setUp(self) -> None:
        """One task waits for C{self.work}."""
        self.clock = Clock()
        self.tasks = Tasks(self.clock)
        self.work: Deferred[None] = Deferred()
        self.seen: list[str] = []

    async def task(self, name: str) -> None:
        """Wait, and note how it ended."""
        try:
            await self.work
        except CancelledError:
            self.seen.append(f"{name} cancelled")
            raise
        self.seen.append(name)

    def test_at_rest(self) -> None:
        """Whoever waits for rest is told once all have ended, at once if none runs."""
        self.successResultOf(self.tasks.at_rest())
        self.tasks.start("a", self.task("a"))
        waiting = [self.tasks.at_rest(), self.tasks.at_rest()]
        self.assertNoResult(waiting[0])
        self.work.callback(None)
        for waiter in waiting:
            self.successResultOf(waiter)
        self.assertEqual(self.seen, ["a"])

    def test_one_of_a_name(self) -> None:
        """A second task of a name that runs is not started."""
        self.tasks.start("a", self.task("a"))
        self.tasks.start("a", self.task("again"))
        self.work.callback(None)
        self.assertEqual(self.seen, ["a"])

    def test_name_is_free_again(self) -> None:
        """A name is free as soon as its task has ended, also at once."""
        self.work.callback(None)
        self.tasks.start("a", self.task("a"))
        self.work = Deferred()
        self.work.callback(None)
        self.tasks.start("a", self.task("again"))
        self.assertEqual(self.seen, ["a", "again"])

    def test_failure(self) -> None:
        """A task that fails is logged, and the others are not touched."""
        self.tasks.start("a", self.task("a"))
        self.work.errback(ValueError("broken"))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.successResultOf(self.tasks.at_rest())

    def test_drain_in_time(self) -> None:
        """Draining waits for what runs, starts nothing more, and leaves no timer."""
        self.tasks.start("a", self.task("a"))
        drained = Deferred.fromCoroutine(self.tasks.drain(20.0))
        self.tasks.start("b", self.task("b"))
        self.assertNoResult(drained)
        self.work.callback(None)
        self.successResultOf(drained)
        self.assertEqual((self.seen, self.clock.getDelayedCalls()), (["a"], []))

    def test_drain_too_late(self) -> None:
        """What does not end in time is cancelled, and draining ends when that is done."""
        self.tasks.start("a", self.task("a"))
        drained = Deferred.fromCoroutine(self.tasks.drain(20.0))
        self.clock.advance(20.0)
        self.successResultOf(drained)
        self.assertEqual(self.seen, ["a cancelled"])

    def test_shielded(self) -> None:
        """Shielded work goes on when its caller leaves, and is waited for as any other."""
        told = self.tasks.shielded(self.task("a"))
        told.cancel()
        self.failureResultOf(told, CancelledError)
        rest = self.tasks.at_rest()
        self.assertNoResult(rest)
        self.work.callback(None)
        self.successResultOf(rest)
        self.assertEqual(self.seen, ["a"])

    def test_shielded_is_answered(self) -> None:
        """Whoever stays gets the result, or the failure, which is then not logged."""
        told = self.tasks.shielded(self.task("a"))
        self.work.errback(ValueError("broken"))
        self.failureResultOf(told, ValueError)

    def test_shielded_fails_unheard(self) -> None:
        """A fault that no caller hears of is logged; a refusal is not."""
        for error in (ValueError("broken"), NotFound("There is none.")):
            self.work = Deferred()
            told = self.tasks.shielded(self.task("a"))
            told.cancel()
            self.failureResultOf(told, CancelledError)
            self.work.errback(error)
        self.assertEqual([failure.type for failure in self.flushLoggedErrors()], [ValueError])

    def test_drain_what_does_not_end(self) -> None:
        """What goes on waiting after it was stopped is stopped again."""
        self.tasks.start("a", self.stubborn())
        drained = Deferred.fromCoroutine(self.tasks.drain(20.0))
        self.clock.advance(20.0)
        self.assertNoResult(drained)
        self.clock.advance(5.0)
        self.successResultOf(drained)
        self.assertEqual((self.seen, self.clock.getDelayedCalls()), (["a cancelled", "again cancelled"], []))

    async def stubborn(self) -> None:
        """Go on waiting when stopped for the first time."""
        with contextlib.suppress(CancelledError):
            await self.task("a")
        self.work = Deferred()
        await self.task("again")
