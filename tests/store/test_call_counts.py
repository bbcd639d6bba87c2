"""Equal calls are counted for all daemons on a database, and stop a session or an action by the database's clock."""

from __future__ import annotations

from aileron.model.audit import Event
from aileron.model.call_counts import COUNTED_SECONDS, STOPPED_SECONDS, CallStop, CountLimit, Stopped
from aileron.model.queries import AuditQuery
from aileron.store._call_counts import SQLCallCounts
from aileron.testing import example_event, seals

from .case import DatabaseCase


class CountTests(DatabaseCase):
    """Two daemons, with limits of three calls of a session, and five of all."""

    def setUp(self) -> None:
        super().setUp()
        self.store = self.opened()
        self.daemons = [SQLCallCounts(self.store._writer, seals(None)) for _ in range(2)]
        self.number = 0

    def count(self, session_id: str = "s", digest: str = "d", action: str = "a") -> CallStop | None:
        """Count a call at one daemon after the other."""
        self.number += 1
        limits = (
            CountLimit(Stopped.SESSION, session_id, 3, self.event("many")),
            CountLimit(Stopped.ACTION, action, 5, self.event("many of all")),
        )
        return self.do(self.daemons[self.number % 2].count(session_id, digest, limits))

    def event(self, why: str) -> Event:
        return example_event("session.broken", payload={"why": why})

    def recorded(self) -> list[str]:
        found = self.do(self.store.audit.list(AuditQuery(type="session.broken")))
        return [str(each.event.payload["why"]) for each in found.items]

    def stop(self, stopped: CallStop | None) -> tuple[str, str, int]:
        assert stopped is not None
        return stopped.stopped.value, stopped.why, round(stopped.seconds_left)

    def test_session(self) -> None:
        """A session is stopped after as many equal calls as with one daemon, which is recorded once."""
        self.assertEqual([self.count() for _ in range(3)], [None] * 3)
        self.assertEqual(self.stop(self.count()), ("session", "many", STOPPED_SECONDS))
        self.assertEqual(self.stop(self.count(digest="other")), ("session", "many", STOPPED_SECONDS))
        self.assertIsNone(self.count("t", "other"))
        self.assertEqual(self.recorded(), ["many"])

    def test_action(self) -> None:
        """An action is stopped after too many equal calls of all sessions."""
        self.assertEqual([self.count(session_id) for session_id in "sstuu"], [None] * 5)
        self.assertEqual(self.stop(self.count("v")), ("action", "many of all", STOPPED_SECONDS))
        self.assertIsNone(self.count("w", action="another", digest="e"))
        self.assertEqual(self.recorded(), ["many of all"])

    def test_time(self) -> None:
        """A call counts for a minute, and a session is stopped for ten, by the database's clock."""
        for _ in range(3):
            self.count()
        self.query(f"UPDATE call_counts SET called_at = called_at - {COUNTED_SECONDS}")
        self.assertIsNone(self.count())
        self.assertEqual(self.query("SELECT count(*) FROM call_counts"), [(1,)])
        while self.count() is None:
            pass
        self.query(f"UPDATE call_stops SET until = until - {STOPPED_SECONDS}")
        self.query("DELETE FROM call_counts")
        self.assertIsNone(self.count())

    def test_lifted(self) -> None:
        """A stop that was lifted at one daemon is lifted at all."""
        while self.count() is None:
            pass
        self.query("DELETE FROM call_counts")
        self.do(self.daemons[0].lift("t", "another"))
        self.assertIsNotNone(self.count())
        self.do(self.daemons[0].lift("s", "another"))
        self.assertIsNone(self.count())
