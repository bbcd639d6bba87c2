"""The record is read on, whatever the store does."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import StoreUnavailable
from aileron.notices._record_follower import RecordFollower
from aileron.testing import example_event
from aileron.values import Notice, Record


class Broken:
    """A record and watermarks that refuse as often as a test says.

    :ivar refusals: so many times more.
    """

    def __init__(self) -> None:
        self.refusals = 0
        self.waiting: Deferred[tuple[Record, ...]] = Deferred()

    def refuse(self) -> None:
        """Refuse, if that is to be done."""
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("The disk is full.")

    async def head(self) -> tuple[int, str] | None:
        """See L{IAudit}."""
        return None

    async def news(self, _sequence: int, _seconds: float) -> tuple[Record, ...]:
        """See L{IAudit}."""
        self.refuse()
        return await self.waiting

    async def all(self) -> dict[str, str]:
        """See L{IWatermarks}."""
        return {}

    async def put(self, _name: str, _value: str) -> None:
        """See L{IWatermarks}."""
        self.refuse()


class FollowerTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Nothing was heard."""
        self.clock = Clock()
        self.broken = Broken()
        self.heard: list[Notice] = []
        store: Any = self.broken
        self.follower = RecordFollower(store, store, self.clock, self.heard.append)

    def test_goes_on(self) -> None:
        """A store that refuses is asked again after a while, and stops nothing."""
        self.broken.refusals = 2
        following = Deferred.fromCoroutine(self.follower.follow())
        self.clock.pump((5, 5))
        self.assertNoResult(following)
        self.assertEqual(self.broken.refusals, 0)
        record = Record(3, example_event("approval.requested"), "", "", "", None)
        waiting, self.broken.waiting = self.broken.waiting, Deferred()
        waiting.callback((record,))
        self.assertEqual(([each.at for each in self.heard], self.follower.sequence), ([record.event.at], 3))
        following.cancel()
        self.failureResultOf(following)

    def test_passed_over(self) -> None:
        """One record that cannot be told is logged and passed over; the next is told."""
        events = [example_event("approval.requested", f"run-{number}") for number in (1, 2)]
        records = [Record(number, event, "", "", "", None) for number, event in enumerate(events, 1)]
        told: list[str | None] = []

        def hear(notice: Notice) -> None:
            if notice.run_id == "run-1":
                raise ValueError("odd")
            told.append(notice.run_id)

        store: Any = self.broken
        following = Deferred.fromCoroutine(RecordFollower(store, store, self.clock, hear).follow())
        for record in records:
            waiting, self.broken.waiting = self.broken.waiting, Deferred()
            waiting.callback((record,))
            self.clock.advance(5)
        self.assertEqual(told, ["run-2"])
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        following.cancel()
        self.failureResultOf(following)

    def test_unwritten(self) -> None:
        """That it cannot be kept what was told fails nothing."""
        self.broken.refusals = 1
        self.successResultOf(Deferred.fromCoroutine(self.follower.mark_told(7)))
        self.assertEqual(self.broken.refusals, 0)
