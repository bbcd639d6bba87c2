"""A coroutine that is closed as garbage wakes nobody: others may be garbage too, and must neither fail nor go on."""

from __future__ import annotations

import gc
from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.scheduling import KeyedLocks
from aileron.waiting import afterwards


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
