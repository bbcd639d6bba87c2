"""Sessions over SQLite do what every keeper of sessions must, and cost little."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import timedelta
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.interfaces import IAudit, ISessions
from aileron.store import Store
from aileron.testing import SessionsContract, UnthreadedPool, example_session, memory_store
from aileron.values import timestamp, utc


class SQLiteSessionsTests(SessionsContract, SynchronousTestCase):
    """The contract, and what SQLite adds."""

    store: Store

    def make_sessions(self) -> tuple[ISessions, IAudit, Clock]:
        """Of a store in a temporary file."""
        clock = Clock()
        clock.advance(example_session().started_at.timestamp())
        self.path, self.threads = Path(self.mktemp()), UnthreadedPool()
        self.store = memory_store(self, clock, self.path, lambda *_: self.threads)
        return self.store.sessions, self.store.audit, clock

    def column(self, name: str) -> str:
        """A column of the one session, as the file has it."""
        connection = sqlite3.connect(self.path)
        try:
            return str(connection.execute(f"SELECT {name} FROM sessions").fetchone()[0])
        finally:
            connection.close()

    def test_known_without_reading(self) -> None:
        """A token that was seen of late costs no read."""
        session = self.opened()
        self.seen(session.id)
        self.threads.hold()
        self.assertEqual(self.seen(session.id), session)
        self.threads.release()

    def test_written_once_a_minute(self) -> None:
        """When a session was seen is written once a minute, not with each request."""
        session = self.opened()
        for _ in range(59):
            self.clock.advance(1)
            self.seen(session.id)
        self.assertEqual(self.column("seen_at"), timestamp(session.seen_at))
        self.clock.advance(1)
        self.seen(session.id)
        self.assertEqual(self.column("seen_at"), timestamp(utc(self.clock.seconds())))

    def test_written_at_close(self) -> None:
        """When a session was seen last is written before the store closes."""
        session = self.opened()
        self.clock.advance(5)
        self.seen(session.id)
        self.do(self.store.close())
        self.assertEqual(self.column("seen_at"), timestamp(utc(self.clock.seconds())))

    def test_refused_flush(self) -> None:
        """A database that cannot note when a session was seen does not refuse the request."""
        session = self.opened()
        self.seen(session.id)
        self.clock.advance(60)
        other = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")
        self.assertIsNotNone(self.seen(session.id))
        other.execute("ROLLBACK")
        self.assertEqual(self.column("seen_at"), timestamp(session.seen_at))

    def test_survives(self) -> None:
        """A session and its token survive the daemon."""
        session = self.opened()
        self.assertEqual(
            self.successResultOf(
                Deferred.fromCoroutine(
                    memory_store(self, self.clock, self.path).sessions.by_token(hashlib.sha256(b"session-1").digest())
                )
            ),
            session,
        )

    def test_ended_while_read(self) -> None:
        """A read that was under way while the session ended leaves no live session remembered."""
        session = self.opened()
        self.threads.hold()
        early = Deferred.fromCoroutine(self.sessions.by_token(hashlib.sha256(b"session-1").digest()))
        ended = Deferred.fromCoroutine(self.sessions.end(session.id, 0, ()))
        self.threads.step()
        self.threads.step()
        self.successResultOf(ended)
        self.successResultOf(early)
        self.threads.release()
        again = self.seen(session.id)
        self.assertFalse(again is None or again.live)

    def test_end_cancelled(self) -> None:
        """Whoever stops waiting for an end does not keep the session alive."""
        session = self.opened()
        self.seen(session.id)
        self.threads.hold()
        ended = Deferred.fromCoroutine(self.sessions.end(session.id, 0, ()))
        ended.cancel()
        self.failureResultOf(ended, CancelledError)
        self.threads.release()
        again = self.seen(session.id)
        self.assertFalse(again is None or again.live)

    def test_clock_back(self) -> None:
        """A session is never seen earlier than it was."""
        session = self.opened()
        late = session.seen_at + timedelta(seconds=90)
        self.clock.advance(90)
        self.seen(session.id)
        self.clock.advance(-60)
        self.seen(session.id)
        self.do(self.store.close())
        self.assertEqual(self.column("seen_at"), timestamp(late))
