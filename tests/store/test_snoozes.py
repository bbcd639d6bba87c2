"""A snooze lasts until its time, through a restart, and no longer than its run waits for a decision."""

from __future__ import annotations

from datetime import datetime, timedelta

from twisted.internet.task import Clock

from aileron.model.authority import PendingLimits
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.store import Store
from aileron.testing import example_ask, example_event, example_run, example_transition, memory_store
from aileron.testing._examples import NOON

from .case import DatabaseCase

LATER = NOON + timedelta(hours=1)


class SnoozesTests(DatabaseCase):
    """A store at noon with one pending run."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.store = self.opened()
        run = example_run()
        asked = example_transition(run, RunState.PENDING, ask=example_ask())
        self.pending, _ = self.do(self.store.runs.receive(run, (asked,), PendingLimits()))

    def opened(self) -> Store:
        """Return a store on the file, opened."""
        return memory_store(self, self.clock, self.path, lambda *_: self.threads)

    def snooze(self, until: datetime | None = LATER) -> bool:
        """Snooze the run, or end its snooze."""
        return self.do(self.store.snoozes.put(self.pending.id, until, (example_event("approval.snoozed"),)))

    def events(self) -> int:
        """Return how many snoozes are on record."""
        return len(self.do(self.store.audit.list(AuditQuery(types=("approval.snoozed",)))).items)

    def test_until(self) -> None:
        """It lasts until its time, after a restart too; a second one takes the place of the first."""
        self.assertTrue(self.snooze(LATER - timedelta(minutes=30)))
        self.assertTrue(self.snooze())
        self.store = self.opened()
        self.assertEqual(self.do(self.store.snoozes.all()), {self.pending.id: LATER})
        self.clock.advance(3600)
        self.assertEqual(self.do(self.store.snoozes.all()), {})

    def test_ended(self) -> None:
        """It can be ended once, which is on record as its beginning is."""
        self.snooze()
        self.assertEqual([self.snooze(None), self.snooze(None)], [True, False])
        self.assertEqual(self.do(self.store.snoozes.all()), {})
        self.assertEqual(self.events(), 2)

    def test_not_pending(self) -> None:
        """It ends when the run is decided or withdrawn, and no other run can be snoozed; nothing is recorded then."""
        self.snooze()
        self.do(self.store.runs.apply(example_transition(self.pending, RunState.CANCELLED)))
        self.assertEqual(self.do(self.store.snoozes.all()), {})
        self.assertFalse(self.snooze())
        self.assertEqual((self.do(self.store.snoozes.all()), self.events()), ({}, 1))
