"""The whole record is looked at while others are served."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from aileron.audit._record_reader import RecordReader
from aileron.testing import unopened_store
from tests.audit.kit import RecordCase


class SlicesTests(RecordCase):
    """A record with many checkpoints."""

    def test_lets_others_go_on(self) -> None:
        """Between some signatures the reactor has its turn."""
        path = self.write(90, range(1, 91), Path(self.mktemp()))
        clock, store = Clock(), unopened_store(path)
        self._do(store.open())
        self.addCleanup(lambda: self._do(store.close()))
        looking = Deferred.fromCoroutine(RecordReader(store.archive, clock).verify({}))
        self.assertNoResult(looking)
        self.assertEqual(len(clock.getDelayedCalls()), 1)
        clock.advance(0)
        self.assertEqual(self.successResultOf(looking).covered, 90)
