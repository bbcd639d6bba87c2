"""Tests of tasks, locks and waiters."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import NotFound
from aileron.runner.scheduling import KeyedLocks, ResultWaiters, Tasks
from aileron.waiting import afterwards


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


class TurnsTests(SynchronousTestCase):
    """One is at a run and another waits for it, and nobody can wake either any more."""

    def setUp(self) -> None:
        """Each notes that it is at it."""
        self.turns = KeyedLocks()
        self.at_it: list[str] = []
        self.holder, self.waiter = self.take("holder"), self.take("waiter")

    def take(self, name: str) -> Coroutine[Deferred[Any], Any, None]:
        """Take a turn that does not end."""

        async def work() -> None:
            self.at_it.append(name)
            await Deferred()

        return self.turns.run("run", work)

    def test_waiter_first(self) -> None:
        """Who was closed before is not called up."""
        holding, waiting = Deferred.fromCoroutine(self.holder), Deferred.fromCoroutine(self.waiter)
        self.waiter.close()
        self.holder.close()
        self.assertNoResult(waiting)
        self.assertNoResult(holding)

    def test_holder_first(self) -> None:
        """Who still waits does not go on."""
        waits = [Deferred.fromCoroutine(each) for each in (self.holder, self.waiter)]
        self.holder.close()
        self.assertEqual(self.at_it, ["holder"])
        self.waiter.close()
        self.assertNoResult(waits[1])

    def test_collected(self) -> None:
        """Nor where the collector comes upon both; trial would tell of an error in a Deferred that nobody has."""
        gc.collect()
        waiter, holder = self.holder, self.waiter  # who was made first is closed first
        cycle = [Deferred.fromCoroutine(holder), Deferred.fromCoroutine(waiter)]
        cycle.append(cycle)  # type: ignore[arg-type]
        del self.holder, self.waiter, self.turns, holder, waiter, cycle
        for _ in range(2):  # what went wrong is told when its Deferred is collected as well
            gc.collect()
        self.assertEqual((self.at_it, self.flushLoggedErrors()), (["waiter"], []))


class AfterwardsTests(SynchronousTestCase):
    """What is done after some work."""

    def setUp(self) -> None:
        """Some work that waits."""
        self.gate: Deferred[str] = Deferred()
        self.done: list[str] = []

    async def work(self) -> str:
        """Come to what C{gate} comes to."""
        return await self.gate

    def test_done(self) -> None:
        """It is done before whoever waits is told, whatever the work came to."""
        told = afterwards(self.work(), lambda: self.done.append("then"))
        told.addCallback(self.done.append)
        self.gate.callback("told")
        self.assertEqual(self.done, ["then", "told"])

    def test_failed(self) -> None:
        """A failure passes by it."""
        told = afterwards(self.work(), lambda: self.done.append("then"))
        self.gate.errback(ValueError("no"))
        self.failureResultOf(told, ValueError)
        self.assertEqual(self.done, ["then"])

    def test_closed(self) -> None:
        """It is not done where the work is closed as garbage."""
        work = self.work()
        told = afterwards(work, lambda: self.done.append("then"))
        work.close()
        self.assertNoResult(told)
        self.assertEqual(self.done, [])
