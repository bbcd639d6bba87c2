"""Which events concern the operator, and how the record is read on, whatever the store does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.features import FeatureSet
from aileron.features.notices import rules
from aileron.features.notices._record_follower import FloodDetector, RecordFollower, notice_of
from aileron.features.notices.values import Notice
from aileron.model.audit import Record
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IWatermarks
from aileron.testing import AuditProxy, example_event
from tests.audit.recorded import RECORDED
from tests.features.example import ExampleFeature

from .case import AT, RULES, notice


class NoticeTests(SynchronousTestCase):
    """From an event to what is told of it."""

    def test_told(self) -> None:
        """What waits, is in doubt, stopped, paused or forged is told; of all else on record nothing."""
        told = {type_ for type_ in RECORDED if notice_of(example_event(type_, "run-1"), RULES) is not None}
        self.assertEqual(
            told,
            {
                "approval.requested",
                "egress.refused",
                "ask.requested",
                "spending.reached",
                "spending.runaway",
                "spending.warned",
                "execution.unknown",
                "run.awaiting_vault",
                "run.awaiting_credential",
                "binding.needs_you",
                "tamper.detected",
                "session.broken",
                "pause.begun",
                "pause.ended",
            },
        )

    def test_features(self) -> None:
        """What a feature adds is told as what the core records, by the feature's own words, and only if it is on."""
        event = example_event("example.shown", payload={"reason": "canary"})
        self.assertIsNone(notice_of(event, RULES))
        added = {**RULES, **ExampleFeature().notices()}
        told = notice_of(event, added)
        assert told is not None
        self.assertEqual((told.rule.kind, told.reason), ("example_shown", None))
        without = {**rules.CORE_RULES, **FeatureSet().without("egress").notices()}
        self.assertIsNone(notice_of(example_event("egress.refused"), without))

    def test_asked_anew(self) -> None:
        """What was approved and is asked anew is told with the reason; what waits already was told of before."""
        stale = example_event("approval.stale", "run-1", {"reason": "The limit is reached.", "was_approved": True})
        told = notice_of(stale, RULES)
        assert told is not None
        self.assertEqual((told.rule, told.run_id, told.reason), (rules.ASKED_ANEW, "run-1", "The limit is reached."))
        self.assertIsNone(notice_of(example_event("approval.stale", "run-1", {"reason": "The file changed."}), RULES))

    def test_no_contents(self) -> None:
        """Of what an event says only its reason is taken, and only from those that the daemon words."""
        event = example_event("approval.requested", "run-1", {"digest": "canary", "reason": "canary", "why": "canary"})
        self.assertNotIn("canary", str(notice_of(event, RULES)))

    @settings(deadline=None, max_examples=50)
    @given(st.sampled_from(sorted(RECORDED)), st.sampled_from([None, 1, [], {}, True]))
    def test_wild(self, type_: str, odd: object) -> None:
        """Contents that were pruned, or are of another type, are no reason not to tell."""
        payload = {"found": odd, "why": odd, "reason": odd, "was_approved": odd}
        told = notice_of(example_event(type_, payload=payload), RULES)  # type: ignore[arg-type]
        self.assertTrue(told is None or told.reason is None)


class FloodTests(SynchronousTestCase):
    """A session that asks and asks."""

    def follow(self, floods: FloodDetector, *seconds: float, session: str = "session-1") -> list[Notice]:
        """What is told of questions asked at these moments."""
        asked = (notice(at=AT + timedelta(seconds=each), session=session) for each in seconds)
        return [told for each in asked if (told := floods.check(each)) is not None]

    def test_many(self) -> None:
        """The tenth question within a minute is told once, and once more after ten minutes."""
        floods = FloodDetector()
        self.assertEqual(self.follow(floods, *range(9)), [])
        (told,) = self.follow(floods, *range(9, 30))
        self.assertEqual((told.rule, told.session), (rules.FLOOD, "session-1"))
        self.assertEqual(len(self.follow(floods, *range(620, 640))), 1)

    def test_slow(self) -> None:
        """Ten questions in more than a minute are none, nor are those of ten sessions, nor what is no question."""
        floods = FloodDetector()
        self.assertEqual(self.follow(floods, *range(0, 200, 7)), [])
        self.assertEqual([self.follow(floods, 300, session=f"session-{number}") for number in range(20)], [[]] * 20)
        self.assertEqual([floods.check(notice(rules.UNKNOWN)) for _ in range(20)], [None] * 20)


@define
class Disk:
    """Refuses as often as a test says.

    :ivar refusals: so many times more.
    """

    refusals: int = 0

    def use(self) -> None:
        """Refuse, if that is to be done."""
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("The disk is full.")


@define
class BrokenAudit(AuditProxy):
    """A record without records, whose reads the disk may refuse.

    :ivar waiting: the next news.
    """

    disk: Disk
    waiting: Deferred[tuple[Record, ...]] = field(factory=Deferred)

    async def head(self) -> tuple[int, str] | None:
        """See L{IAudit}."""
        return None

    async def news(self, _sequence: int, _seconds: float) -> tuple[Record, ...]:
        """See L{IAudit}."""
        self.disk.use()
        return await self.waiting


@implementer(IWatermarks)
@define
class BrokenWatermarks:
    """Watermarks that the disk may refuse to keep."""

    disk: Disk

    async def all(self) -> dict[str, str]:
        """See L{IWatermarks}."""
        return {}

    async def put(self, name: str, value: str) -> None:
        """See L{IWatermarks}."""
        self.disk.use()

    async def swap(self, name: str, before: str | None, value: str) -> bool:
        """See L{IWatermarks}."""
        self.disk.use()
        return True


class FollowerTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Nothing was heard."""
        self.clock = Clock()
        self.disk = Disk()
        self.broken = BrokenAudit(self.disk)
        self.heard: list[Notice] = []
        self.follower = self.following(self.heard.append)

    def following(self, hear: Callable[[Notice], None]) -> RecordFollower:
        """Return one that tells C{hear}."""
        return RecordFollower(self.broken, BrokenWatermarks(self.disk), self.clock, RULES, hear)

    def test_goes_on(self) -> None:
        """A store that refuses is asked again after a while, and stops nothing."""
        self.disk.refusals = 2
        following = Deferred.fromCoroutine(self.follower.follow())
        self.clock.pump((5, 5))
        self.assertNoResult(following)
        self.assertEqual(self.disk.refusals, 0)
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

        following = Deferred.fromCoroutine(self.following(hear).follow())
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
        self.disk.refusals = 1
        self.successResultOf(Deferred.fromCoroutine(self.follower.mark_notified(7)))
        self.assertEqual(self.disk.refusals, 0)
