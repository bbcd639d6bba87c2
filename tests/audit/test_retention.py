"""Old contents go, and the record says so and holds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from aileron.audit import Retention
from aileron.base.json import utc
from aileron.model.audit import Event
from aileron.model.queries import AuditQuery
from aileron.testing import example_event, unopened_store
from tests.audit.kit import RecordCase

NOW = 1_800_000_000.0


class RetentionTests(RecordCase):
    """Two days are kept of four."""

    def setUp(self) -> None:
        """One event a day, the newest now."""
        super().setUp()
        self.clock = Clock()
        self.clock.advance(NOW)
        self.path = Path(self.mktemp())
        self.store = unopened_store(self.path, self.clock)
        self._do(self.store.open())
        self.addCleanup(lambda: self._do(self.store.close()))
        days = [utc(NOW) - timedelta(days=day) for day in (4, 3, 2, 1, 0)]
        events = [example_event(f"day.{number}", payload={"secret": "x" * 40}, at=at) for number, at in enumerate(days)]
        self._do(self.store.audit.append(*events))
        self.retention = Retention(self.store.audit, self.store.archive, self.clock, self.event, 2)

    def event(self, type_: str, **payload: int) -> Event:
        """One of the daemon's own, now."""
        return example_event(type_, payload=dict(payload), at=utc(self.clock.seconds()))

    def prune(self) -> int:
        """How many it deletes."""
        return self.successResultOf(Deferred.fromCoroutine(self.retention.prune()))

    def test_deleted(self) -> None:
        """What is older goes, is told to have gone, and the record verifies; the next time there is nothing to do."""
        self.assertEqual((self.prune(), self.prune()), (2, 0))
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery())))
        self.assertEqual([record.pruned for record in page.items], [False, False, False, False, True, True])
        self.assertEqual(page.items[0].event.type, "audit.pruned")
        self.assertEqual(page.items[0].event.payload["up_to"], 2)
        self.assertEqual([record.event.payload for record in page.items[-2:]], [{}, {}])
        found = self.verify(self.path)
        self.assertEqual((found.sound, found.pruned), (True, 2))

    def test_kept(self) -> None:
        """A record that has nothing older gets no word about it."""
        self.retention = Retention(self.store.audit, self.store.archive, self.clock, self.event, 30)
        self.assertEqual(self.prune(), 0)
        self.assertEqual(self.verify(self.path).last, 5)

    def test_crash_between(self) -> None:
        """A life that ends between the word and the deed leaves the deed to the next."""
        self._do(self.store.audit.append(self.event("audit.pruned", up_to=2)))
        self.assertTrue(self.verify(self.path).sound)
        self.assertEqual(self.prune(), 2)
        self.assertTrue(self.verify(self.path).sound)

    def test_gone_from_the_disk(self) -> None:
        """What was deleted is overwritten where it lay."""
        self._do(
            self.store.audit.append(example_event("old", payload={"s": "CANARY"}, at=utc(NOW) - timedelta(days=9)))
        )
        late = Retention(self.store.audit, self.store.archive, self.clock, self.event, 2)
        self.clock.advance(10 * 86400)
        self.successResultOf(Deferred.fromCoroutine(late.prune()))
        self._do(self.store.close())
        self.assertNotIn(b"CANARY", self.path.read_bytes())
