"""Sessions over SQLite do what every keeper of sessions must, and cost little."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import timestamp, utc
from aileron.base.unthreaded import UnthreadedPool
from aileron.model.authority import PendingLimits
from aileron.model.errors import LimitExceeded
from aileron.model.interfaces.store import IAudit, ISessions
from aileron.model.runs import RunState
from aileron.model.sessions import Process, SessionTally
from aileron.store import Store, _sessions
from aileron.store._sessions import SessionCache
from aileron.testing import (
    SessionsContract,
    example_ask,
    example_decision,
    example_run,
    example_session,
    example_transition,
    memory_store,
)

from .case import FileAccess


class SQLiteSessionsTests(FileAccess, SessionsContract, SynchronousTestCase):
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
        return str(self.query(f"SELECT {name} FROM sessions")[0][0])

    def test_peer(self) -> None:
        """The process that opened a session is kept beside its claims."""
        for at, peer in enumerate((Process(7, "/usr/bin/x", "/src"), Process(8), None)):
            session = evolve(example_session(f"s-{at}"), peer=peer)
            self.do(self.sessions.open(session, _digest(session.id), _digest(f"g {at}"), ()))
            found = self.do(self.sessions.get(session.id))
            self.assertEqual(peer, found and found.peer)

    def test_tally(self) -> None:
        """What a session's runs came to is counted, and no other's."""
        runs = self.store.runs
        for at, end in enumerate((None, True, False, RunState.COMPLETED, RunState.UNKNOWN)):
            run = example_run(f"run-{at}", gated=end is None or isinstance(end, bool))
            asked = example_transition(run, RunState.PENDING, ask=example_ask())
            run = self.do(runs.receive(run, (asked,) if run.gated else (), PendingLimits()))[0]
            if isinstance(end, bool):
                decided = RunState.APPROVED if end else RunState.DENIED
                self.do(runs.apply(example_transition(run, decided, decision=example_decision(end))))
            elif end is not None:
                run = self.do(runs.apply(example_transition(run, RunState.EXECUTING)))
                self.do(runs.apply(example_transition(run, end)))
        other = example_run("other", gated=False, session_id="session-2")
        self.do(runs.receive(other, (), PendingLimits()))
        expected = SessionTally(calls=5, waiting=1, approvals=1, denials=1, effects=1, in_doubt=1)
        self.assertEqual(self.do(self.sessions.tally("session-1")), expected)
        self.assertEqual(self.do(self.sessions.tally("session-2")), SessionTally(calls=1))

    def test_most_a_minute(self) -> None:
        """At most 100 sessions are opened within a minute, though each was ended; the next minute has room."""
        for at in range(100):
            self.opened(f"s-{at}")
            self.do(self.sessions.end(f"s-{at}", 0, ()))
        self.refused(self.sessions.open(example_session("x"), _digest("x"), _digest("g"), ()), LimitExceeded)
        self.clock.advance(59)
        late = evolve(example_session("x"), started_at=utc(self.clock.seconds()), seen_at=utc(self.clock.seconds()))
        self.refused(self.sessions.open(late, _digest("x"), _digest("g"), ()), LimitExceeded)
        self.clock.advance(1)
        self.opened("y")

    def test_forgotten(self) -> None:
        """Of very many sessions the oldest are forgotten as others are opened, but none that is at work."""
        self.patch(_sessions, "MOST_KEPT", 3)
        for at in range(6):
            self.opened(f"s-{at}")
        for at in (1, 2, 4, 5):
            self.do(self.sessions.end(f"s-{at}", 0, ()))
        self.clock.advance(601)
        self.find_by_token("s-0")
        self.opened("s-6")
        left = [each.id for each in self.do(self.sessions.list(False, 9, None)).items]
        self.assertEqual(["s-6", "s-5", "s-4", "s-0"], left)

    def test_cache(self) -> None:
        """Of the sessions at hand those that were not used for longest are let go first.

        One that was read before a session ended is not remembered: it may be that one, as it was before.
        """
        cache, session = SessionCache(2), example_session()
        for name in (b"a", b"b"):
            cache.put(name, session, cache.ticket())
        cache.get(b"a")
        cache.put(b"c", session, cache.ticket())
        self.assertEqual([cache.get(name) for name in (b"a", b"b", b"c")], [session, None, session])
        ticket = cache.ticket()
        cache.drop(session.id)
        cache.put(b"a", session, ticket)
        self.assertEqual([cache.get(name) for name in (b"a", b"c")], [None, None])

    def test_known_without_reading(self) -> None:
        """A token, and a gateway key, that were seen of late cost no read; a session survives the daemon."""
        session = self.opened()
        self.find_by_token(session.id)
        self.find_by_gateway_key(session.id)
        self.threads.hold()
        self.assertEqual((self.find_by_token(session.id), self.find_cached(session.id)), (session, session))
        self.threads.release()
        again = memory_store(self, self.clock, self.path).sessions
        self.assertEqual(self.do(again.by_token(_digest(session.id))), session)

    def test_refused_flush(self) -> None:
        """A database that cannot note when a session was seen does not refuse the request."""
        session = self.opened()
        self.find_by_token(session.id)
        self.clock.advance(60)
        with self.locked():
            self.assertIsNotNone(self.find_by_token(session.id))
        self.assertEqual(self.column("seen_at"), timestamp(session.seen_at))

    def test_end_cancelled(self) -> None:
        """Whoever stops waiting for an end does not keep the session alive."""
        session = self.opened()
        self.find_by_token(session.id)
        self.threads.hold()
        ended = Deferred.fromCoroutine(self.sessions.end(session.id, 0, ()))
        ended.cancel()
        self.failureResultOf(ended, CancelledError)
        self.threads.release()
        again = self.find_by_token(session.id)
        self.assertFalse(again is None or again.live)

    def test_written_once_a_minute(self) -> None:
        """When a session was seen is written once a minute, not with each request, and before the store closes.

        It is never seen earlier than it was.
        """
        session = self.opened()
        for seconds, seen in ((59, 0), (1, 60), (-30, 60), (60, 60)):
            self.clock.advance(seconds)
            self.find_by_token(session.id)
            self.assertEqual(self.column("seen_at"), timestamp(session.seen_at + timedelta(seconds=seen)))
        self.do(self.store.close())
        self.assertEqual(self.column("seen_at"), timestamp(session.seen_at + timedelta(seconds=90)))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
