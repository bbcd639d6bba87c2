"""The record over SQLite does what every record must."""

from __future__ import annotations

from datetime import UTC, datetime

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.interfaces import IAudit
from aileron.testing import AuditContract, UnthreadedPool, memory_store
from aileron.values import DAEMON, AuditQuery, Event


class SQLiteAuditTests(AuditContract, SynchronousTestCase):
    """The contract."""

    def make_audit(self) -> IAudit:
        """Of a store in a temporary file."""
        return memory_store(self).audit


class NewsTests(SynchronousTestCase):
    """Who waits for more."""

    def test_in_time(self) -> None:
        """After the time there is no news, and who has left is told nothing; others still are."""
        clock = Clock()
        audit = memory_store(self, clock=clock).audit
        patient, leaving, staying = (Deferred.fromCoroutine(audit.news(0, seconds)) for seconds in (2, 9, 9))
        clock.advance(3)
        self.assertEqual(self.successResultOf(patient), ())
        leaving.cancel()
        self.failureResultOf(leaving, CancelledError)
        event = Event("one", "binding.revoked", datetime(2026, 1, 1, tzinfo=UTC), DAEMON)
        self.successResultOf(Deferred.fromCoroutine(audit.append(event)))
        self.assertEqual([record.event for record in self.successResultOf(staying)], [event])


class CallersLeaveTests(SynchronousTestCase):
    """A client that hangs up."""

    def test_kept(self) -> None:
        """What has happened stays on record, also where its caller left while it waited behind another write."""
        pool = UnthreadedPool()
        audit = memory_store(self, threads=lambda *_: pool).audit
        pool.hold()
        first, second = (
            Deferred.fromCoroutine(
                audit.append(Event(id_, "binding.revoked", datetime(2026, 1, 1, tzinfo=UTC), DAEMON))
            )
            for id_ in ("one", "two")
        )
        second.cancel()
        self.failureResultOf(second, CancelledError)
        pool.release()
        self.successResultOf(first)
        records = self.successResultOf(Deferred.fromCoroutine(audit.list(AuditQuery()))).items
        self.assertEqual([record.event.id for record in records], ["two", "one"])
