"""Of several daemons that follow one audit log, one notifies the operator."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.notices._record_follower import ROW, RecordFollower
from aileron.testing import example_event, memory_store

from .case import RULES


class LeadingTests(SynchronousTestCase):
    """Several daemons follow one log, and one of them notifies the operator."""

    def test_takes_over(self) -> None:
        """The one that does not lead tells nothing; when it leads, it goes on after what the other has told."""
        clock = Clock()
        store = memory_store(self, clock)
        leads, told = [False], list[str | None]()
        follower = RecordFollower(
            store.audit, store.watermarks, clock, RULES, lambda notice: told.append(notice.run_id), lambda: leads[0]
        )
        self.successResultOf(Deferred.fromCoroutine(follower.begin()))
        following = Deferred.fromCoroutine(follower.follow())
        for number in (1, 2):
            event = example_event("approval.requested", f"run-{number}")
            self.successResultOf(Deferred.fromCoroutine(store.audit.append(event)))
        clock.pump((5, 5))
        self.assertEqual(told, [])
        self.successResultOf(Deferred.fromCoroutine(store.watermarks.put(ROW, "1")))
        leads[0] = True
        clock.advance(5)
        self.assertEqual(told, ["run-2"])
        following.cancel()
        self.failureResultOf(following)
