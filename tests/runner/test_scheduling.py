"""Tests of tasks, locks and waiters."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.base.waiting import afterwards
from aileron.model.errors import NotFound, StoreUnavailable
from aileron.runner.tasks import KeyedLocks, ResultWaiters, Tasks, Timers


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

    def test_one_of_a_name(self) -> None:
        """A second task of a name that runs is not started; a name is free as soon as its task has ended."""
        self.tasks.start("a", self.task("a"))
        self.tasks.start("a", self.task("again"))
        self.work.callback(None)
        self.work = Deferred()
        self.work.callback(None)
        self.tasks.start("a", self.task("later"))
        self.assertEqual(self.seen, ["a", "later"])

    def test_failure(self) -> None:
        """A fault that no caller hears of is logged with its place; a refusal is not, nor what a caller was told."""
        for error, logged in ((ValueError("broken"), 2), (NotFound("There is none."), 0)):
            works: list[Deferred[None]] = [Deferred(), Deferred(), Deferred()]
            alone, left, told = (self.failing(each) for each in works)
            self.tasks.start("alone", alone)
            leaving = self.tasks.shielded(left)
            staying = self.tasks.shielded(told)
            leaving.cancel()
            self.failureResultOf(leaving, CancelledError)
            for each in works:
                each.errback(error)
            self.failureResultOf(staying, type(error))
            self.assertEqual(len(self.flushLoggedErrors()), logged)
        self.successResultOf(self.tasks.at_rest())

    async def failing(self, work: Deferred[None]) -> None:
        """Come to what C{work} comes to."""
        await work

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

    def test_cancelled(self) -> None:
        """Who leaves ends no other's wait and leaves no timer behind."""
        leaving, staying = self.wait("a"), self.wait("a")
        leaving.cancel()
        self.failureResultOf(leaving, CancelledError)
        self.waiters.fire_all("a", 7)
        self.assertEqual(self.successResultOf(staying), 7)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_dismissed(self) -> None:
        """Who was dismissed is not told."""
        waiter = self.waiters.enlist("a")
        self.waiters.dismiss("a", waiter)
        self.waiters.dismiss("a", waiter)
        self.waiters.fire_all("a", 7)
        self.assertNoResult(waiter)


class TurnsTests(SynchronousTestCase):
    """One is at a run and another waits for it, and nobody can wake either any more."""

    def setUp(self) -> None:
        """Each notes that it is at it; the collector looks at nothing that was there before."""
        gc.freeze()
        self.addCleanup(gc.unfreeze)
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
        for answer in ("told", ValueError("no")):
            self.setUp()
            told = afterwards(self.work(), lambda: self.done.append("then"))
            told.addBoth(lambda _: self.done.append("told"))
            self.gate.callback(answer) if isinstance(answer, str) else self.gate.errback(answer)
            self.assertEqual(self.done, ["then", "told"])

    def test_closed(self) -> None:
        """It is not done where the work is closed as garbage."""
        work = self.work()
        told = afterwards(work, lambda: self.done.append("then"))
        work.close()
        self.assertNoResult(told)
        self.assertEqual(self.done, [])


class OneAtATimeTests(SynchronousTestCase):
    """Turns that are over and taken again in one moment."""

    def test_a_turn_of_its_own(self) -> None:
        """Whoever takes a turn while an earlier one is being given back shares it with nobody."""
        turns, gates, at_it = KeyedLocks(), [Deferred[None](), Deferred[None](), Deferred[None]()], list[str]()

        async def act(name: str, gate: Deferred[None] | None) -> None:
            at_it.append(name)
            if gate is not None:
                await gate

        def take(name: str, gate: Deferred[None] | None) -> Deferred[None]:
            return Deferred.fromCoroutine(turns.run("run", lambda: act(name, gate)))

        take("first", gates[0])
        second = take("second", None)
        second.addCallback(lambda _: at_it.append("over") if take("third", gates[1]).called else None)
        gates[0].callback(None)
        take("fourth", gates[2])
        self.assertEqual(at_it, ["first", "second", "third"])
        gates[1].callback(None)
        self.assertEqual(at_it, ["first", "second", "third", "fourth"])


class AlarmsTests(SynchronousTestCase):
    """Alarms of one run, one in the place of another."""

    def test_set_while_it_failed(self) -> None:
        """An alarm that was set while an earlier one rang in vain rings, once, at its own time."""
        clock, rung = Clock(), list[float]()
        alarms, failing = Timers(clock), Deferred[None]()

        def ring(_: str) -> Awaitable[None]:
            return failing

        async def note(_: str) -> None:
            rung.append(clock.seconds())

        def at(seconds: float, ring: Callable[[str], Awaitable[None]]) -> None:
            alarms.watch("run", utc(clock.seconds() + seconds), ring)

        at(1.0, ring)
        clock.advance(1.0)
        at(60.0, note)
        failing.errback(StoreUnavailable("Full."))
        clock.pump([1.0] * 100)
        self.assertEqual(rung, [61.0])
        self.assertEqual(clock.getDelayedCalls(), [])
