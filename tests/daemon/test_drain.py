"""The stop of one daemon among several: what it waits for, in which order, and for how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._config import StoreSettings
from aileron.daemon._drain import Drain, longest_stop

_SEVERAL = StoreSettings(daemons="several", drain_seconds=20, notice_seconds=5)


class DrainTests(SynchronousTestCase):
    """The parts of a daemon note what they are told.

    :ivar is_working: whether an agent still waits for an answer.
    """

    def setUp(self) -> None:
        self.clock = Clock()
        self.told: list[str] = []
        self.is_working = False
        self.tasks: Deferred[None] = Deferred()

    def refuse_work(self) -> None:
        """Note it."""
        self.told.append("refuse")

    async def hand_over(self, kept: Collection[str]) -> None:
        """Note it."""
        self.told.append("hand over")

    async def drain(self, seconds: float, hand_over: Callable[[Collection[str]], Awaitable[None]]) -> None:
        """Hand over, and wait for the tasks."""
        self.told.append(f"drain {seconds:g}")
        await hand_over(())
        await self.tasks

    def stop(self, settings: StoreSettings = _SEVERAL) -> Deferred[None]:
        """Begin the stop."""
        parts = cast("Any", self)
        return Deferred.fromCoroutine(Drain(self.clock, settings, parts, parts, parts).run())

    def test_order(self) -> None:
        """Work is refused before runs are left to others: what is received in between would have no daemon."""
        self.stop()
        self.assertEqual(self.told, ["refuse", "drain 20", "hand over"])

    def test_notice(self) -> None:
        """The sites answer at least as long as a balancer needs to notice, also if nothing is to be done."""
        self.tasks.callback(None)
        stopping = self.stop()
        self.clock.advance(4.9)
        self.assertNoResult(stopping)
        self.clock.advance(0.2)
        self.successResultOf(stopping)

    def test_answers(self) -> None:
        """Agents get the outcomes of what has ended before anything is closed."""
        self.is_working = True
        self.tasks.callback(None)
        stopping = self.stop()
        self.clock.pump([0.1] * 70)
        self.assertNoResult(stopping)
        self.is_working = False
        self.clock.advance(0.1)
        self.successResultOf(stopping)

    def test_endless(self) -> None:
        """Agents that never stop asking hold it up no longer than the longest stop allows."""
        self.is_working = True
        self.tasks.callback(None)
        stopping = self.stop()
        self.clock.pump([0.1] * 198)
        self.assertNoResult(stopping)
        self.clock.pump([0.1] * 4)
        self.successResultOf(stopping)

    def test_longest(self) -> None:
        """The longest stop counts the longer of both times; a daemon that is alone has none."""
        self.assertEqual(longest_stop(_SEVERAL), 30.0)
        self.assertEqual(longest_stop(StoreSettings(daemons="several", drain_seconds=1, notice_seconds=40)), 50.0)
        self.assertIsNone(longest_stop(StoreSettings()))
