"""The tests that every implementation of L{IAudit} and L{ISessions} must pass."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from aileron.audit import GENESIS, Verification
from aileron.base.json import JSON, compact, timestamp
from aileron.model.audit import Actor, Record, Row
from aileron.model.errors import InvalidRequest, LimitExceeded, NotFound
from aileron.model.interfaces.store import IAudit, ISessions
from aileron.model.queries import MOST_PAGE_BYTES, AuditQuery
from aileron.model.sessions import Session, SessionEnding, SessionTally

from ._case import StoreCase
from ._examples import AGENT, NOON, example_event, example_session


class _RecordCase(StoreCase):
    audit: IAudit

    def types(self, query: AuditQuery | None = None) -> list[str]:
        """Return the types of the events that match the query, newest first."""
        return [record.event.type for record in self.do(self.audit.list(query or AuditQuery())).items]


class AuditContract(_RecordCase):
    """Tests of L{IAudit}.  Mix into a test case with C{make_audit}."""

    def make_audit(self) -> IAudit:
        """Return an empty audit log whose calls finish at once."""
        raise NotImplementedError

    def setUp(self) -> None:
        """Create the audit log."""
        super().setUp()
        self.audit = self.make_audit()

    def test_provides(self) -> None:
        """The implementation provides L{IAudit}."""
        self.assertTrue(verifyObject(IAudit, self.audit))

    def test_kept_whole(self) -> None:
        """An event is read back unchanged, from the list and by its id."""
        about = {"session_id": "s", "action": "a", "connector": "builtin://slack", "failure_class": "network_error"}
        event = example_event("x.y", "run-1", {"é": [2**70, "\ud800", {"n": None}]}, actor=AGENT, **about)
        self.do(self.audit.append(event))
        (record,) = self.do(self.audit.list(AuditQuery())).items
        self.assertEqual((record.sequence, record.event, record.previous_hash), (1, event, GENESIS))
        self.assertEqual(self.do(self.audit.get(event.id)), record)
        self.assertIsNone(self.do(self.audit.get("other")))

    def test_chained(self) -> None:
        """Records are numbered from 1 without a gap, each contains the previous hash, and their salts differ."""
        self.do(self.audit.append(example_event("a"), example_event("b")))
        self.do(self.audit.append(example_event("c")))
        records = self.do(self.audit.list(AuditQuery())).items[::-1]
        self.assertEqual([record.event.type for record in records], ["a", "b", "c"])
        self.assertIsNone(check_chain(records))
        self.assertEqual(len({record.salt for record in records}), 3)

    def test_head(self) -> None:
        """The newest record can be read, and the hash of each record by its number. An empty log has neither."""
        self.assertIsNone(self.do(self.audit.head()))
        self.do(self.audit.append(example_event("a"), example_event("b")))
        newest, older = self.do(self.audit.list(AuditQuery())).items
        self.assertEqual(self.do(self.audit.head()), (2, newest.hash))
        self.assertEqual([self.do(self.audit.at(number)) for number in (1, 2, 3)], [older.hash, newest.hash, None])

    def test_news(self) -> None:
        """A reader gets the records after its last one at once, oldest first, or waits for the next."""
        self.do(self.audit.append(example_event("a"), example_event("b"), example_event("c")))
        told = self.do(self.audit.news(1, 5))
        self.assertEqual([(record.sequence, record.event.type) for record in told], [(2, "b"), (3, "c")])
        waiting = [Deferred.fromCoroutine(self.audit.news(3, 5)) for _ in range(2)]
        for one in waiting:
            self.assertNoResult(one)
        self.do(self.audit.append(example_event("d")))
        for one in waiting:
            self.assertEqual([record.event.type for record in self.successResultOf(one)], ["d"])
        self.assertEqual(self.do(self.audit.news(4, 0)), ())

    def test_count_daily(self) -> None:
        """Records of the given types are counted by day, including those at exactly the given time."""
        days = [NOON - timedelta(days=1), NOON - timedelta(seconds=1), NOON, NOON + timedelta(days=1)]
        self.do(self.audit.append(*(example_event(kind, at=at) for at in days for kind in ("a", "b", "b", "c"))))
        first, second = NOON.date(), (NOON + timedelta(days=1)).date()
        counted = [(first, "a", 1), (first, "b", 2), (second, "a", 1), (second, "b", 2)]
        self.assertEqual([*self.do(self.audit.count_daily(NOON, ("a", "b")))], counted)
        self.assertEqual([*self.do(self.audit.count_daily(NOON, ("d",)))], [])

    def test_filters(self) -> None:
        """Every given field must match. C{since} is inclusive and C{until} exclusive."""
        later = NOON + timedelta(seconds=1)
        self.do(
            self.audit.append(
                example_event("a", "run-1", action="x", connector="c"),
                example_event("b", "run-2", session_id="s", failure_class="f", at=later),
            )
        )
        for query, expected in (
            (AuditQuery(), ["b", "a"]),
            (AuditQuery(type="a"), ["a"]),
            (AuditQuery(types=("a", "c")), ["a"]),
            (AuditQuery(types=("a", "b"), run_id="run-2"), ["b"]),
            (AuditQuery(run_id="run-2"), ["b"]),
            (AuditQuery(action="x"), ["a"]),
            (AuditQuery(connector="c"), ["a"]),
            (AuditQuery(session_id="s"), ["b"]),
            (AuditQuery(failure_class="f"), ["b"]),
            (AuditQuery(since=later), ["b"]),
            (AuditQuery(until=later), ["a"]),
            (AuditQuery(since=NOON, until=later, type="b"), []),
        ):
            self.assertEqual(self.types(query), expected, query)

    def test_commands(self) -> None:
        """Logins by commands and logouts that end their own login are omitted. Every other record is listed."""
        command, browser = Actor("human", "command"), Actor("human", "browser")
        self.do(
            self.audit.append(
                example_event("operator.login", actor=command, payload={"browser": False}),
                example_event("operator.login", "browser's", actor=browser, payload={"browser": True}),
                example_event("operator.logout", "another's", actor=command, payload={"session": "browser"}),
                example_event("operator.logout", actor=command, payload={"session": "command"}),
                example_event("a", "other", actor=command, payload={"browser": False, "session": "command"}),
                example_event("operator.login", "unsaid", actor=command),
            )
        )
        listed = self.do(self.audit.list(AuditQuery(commands=False)))
        self.assertEqual([each.event.run_id for each in listed.items], ["unsaid", "other", "another's", "browser's"])
        self.assertEqual(len(self.do(self.audit.list(AuditQuery())).items), 6)

    def test_pages(self) -> None:
        """Pages are consecutive, newest first, even if events are added in between."""
        self.do(self.audit.append(*(example_event(str(number)) for number in range(3))))
        first = self.do(self.audit.list(AuditQuery(limit=2)))
        self.do(self.audit.append(example_event("new")))
        second = self.do(self.audit.list(AuditQuery(limit=2, cursor=first.cursor)))
        self.assertEqual([record.event.type for record in (*first.items, *second.items)], ["2", "1", "0"])
        self.assertIsNone(second.cursor)
        self.refused(self.audit.list(AuditQuery(cursor="x")), InvalidRequest)

    def test_bytes(self) -> None:
        """A page limited in bytes is shorter but never empty, and the next page continues without a gap."""
        sizes = (1000, 1000, 5000, 1000)
        self.do(self.audit.append(*(example_event(str(at), payload={"t": "x" * n}) for at, n in enumerate(sizes))))
        found, cursor = [], None
        for _ in range(3):
            page = self.do(self.audit.list(AuditQuery(most_bytes=3000, cursor=cursor)))
            found.append([record.event.type for record in page.items])
            cursor = page.cursor
        self.assertEqual((found, cursor), ([["3"], ["2"], ["1", "0"]], None))

    def test_bytes_by_default(self) -> None:
        """Pages of records, and the records that a reader waited for, are limited to 4 MiB by default."""
        payload: dict[str, JSON] = {"text": "x" * (MOST_PAGE_BYTES // 3)}
        self.do(self.audit.append(*(example_event(str(number), payload=payload) for number in range(4))))
        page = self.do(self.audit.list(AuditQuery()))
        self.assertEqual([record.event.type for record in page.items], ["3", "2"])
        news = self.do(self.audit.news(0, 5))
        self.assertEqual([record.event.type for record in news], ["0", "1"])
        self.assertEqual([each.event.type for each in self.do(self.audit.news(2, 5))], ["2", "3"])


class SessionsContract(_RecordCase):
    """Tests of L{ISessions}.  Mix into a test case with C{make_sessions}."""

    clock: Clock
    sessions: ISessions

    def make_sessions(self) -> tuple[ISessions, IAudit, Clock]:
        """Return an empty L{ISessions}, its audit log, and its clock at the example's time."""
        raise NotImplementedError

    def setUp(self) -> None:
        """Create the sessions, the audit log and the clock."""
        super().setUp()
        self.sessions, self.audit, self.clock = self.make_sessions()

    def opened(self, session_id: str = "session-1") -> Session:
        """Open a session whose token is its id, and return it."""
        session = example_session(session_id, NOON + timedelta(seconds=self.clock.seconds() - NOON.timestamp()))
        self.do(self.sessions.open(session, _digest(session_id), _digest(f"gateway {session_id}"), ()))
        return session

    def find_by_token(self, session_id: str) -> Session | None:
        """Return the session by its token, or None if there is none. This counts as a request of the session."""
        return self.do(self.sessions.by_token(_digest(session_id)))

    def find_by_gateway_key(self, session_id: str) -> Session | None:
        """Return the session by its gateway key, or None if there is none. This counts as a request of the session."""
        return self.do(self.sessions.by_gateway_key(_digest(f"gateway {session_id}")))

    def find_cached(self, session_id: str) -> Session | None:
        """Return the session by its gateway key if it is cached, else None."""
        return self.sessions.known_gateway_key(_digest(f"gateway {session_id}"))

    def test_provides(self) -> None:
        """The implementation provides L{ISessions}."""
        self.assertTrue(verifyObject(ISessions, self.sessions))

    def test_opened(self) -> None:
        """An opened session is found by its token and its id, and its start is recorded."""
        session = example_session()
        events = (example_event("session.started"),)
        self.do(self.sessions.open(session, _digest("t"), _digest("g"), events))
        self.assertEqual(self.do(self.sessions.by_token(_digest("t"))), session)
        self.assertEqual(self.do(self.sessions.get(session.id)), session)
        self.assertEqual(self.types(), ["session.started"])

    def test_unknown(self) -> None:
        """For unknown tokens and ids, None is returned. A gateway key is not accepted as a token."""
        self.opened()
        self.assertIsNone(self.find_by_token("other"))
        self.assertIsNone(self.find_by_token("gateway session-1"))
        self.assertIsNone(self.do(self.sessions.get("other")))
        self.refused(self.sessions.end("other", 0, ()), NotFound)

    def test_gateway_key(self) -> None:
        """A session is found by its own gateway key, and not by another one."""
        session, other = self.opened(), self.opened("session-2")
        self.assertEqual(
            (self.find_by_gateway_key("session-1"), self.find_by_gateway_key("session-2")), (session, other)
        )
        self.assertIsNone(self.find_by_gateway_key("other"))

    def test_each_key_its_own(self) -> None:
        """A token is not accepted as a gateway key, nor a gateway key as a token, even for a session used with both."""
        session = self.opened()
        self.find_by_token(session.id)
        self.find_by_gateway_key(session.id)
        self.assertIsNone(self.do(self.sessions.by_gateway_key(_digest(session.id))))
        self.assertIsNone(self.sessions.known_gateway_key(_digest(session.id)))
        self.assertIsNone(self.find_by_token(f"gateway {session.id}"))

    def test_known_gateway_key(self) -> None:
        """A recently used gateway key is known at once. An unused or unknown one is not."""
        session = self.opened()
        self.assertIsNone(self.find_cached("other"))
        self.find_by_gateway_key(session.id)
        known = self.find_cached(session.id)
        self.assertEqual(session.id, known and known.id)
        self.assertIsNone(self.find_cached("other"))

    def test_in_band_key(self) -> None:
        """A session is found by its in-band key only in by_in_band_key, and other sessions have none."""
        session = evolve(self.opened(), id="in-band", in_band=True)
        self.do(self.sessions.open(session, _digest("t"), _digest("g"), (), _digest("i")))
        self.do(self.sessions.open(example_session("plain"), _digest("t2"), _digest("g2"), ()))
        for _ in range(2):  # from the database, then from the cache
            self.assertEqual(self.do(self.sessions.by_in_band_key(_digest("i"))), session)
        for other in ("t", "g", "t2", "g2", "i2"):
            self.assertIsNone(self.do(self.sessions.by_in_band_key(_digest(other))))
        self.assertIsNone(self.do(self.sessions.by_token(_digest("i"))))
        self.assertIsNone(self.do(self.sessions.by_gateway_key(_digest("i"))))
        ended = self.do(self.sessions.end(session.id, 0, ()))
        self.assertEqual(self.do(self.sessions.by_in_band_key(_digest("i"))), ended)

    def test_calls_are_seen(self) -> None:
        """A call with a gateway key counts as a request, cached or not."""
        session = self.opened()
        for at, use in enumerate((self.find_by_gateway_key, self.find_cached), 1):
            self.clock.advance(5)
            self.assertIsNotNone(use(session.id))
            noted = self.do(self.sessions.get(session.id))
            self.assertEqual(session.seen_at + timedelta(seconds=5 * at), noted and noted.seen_at)

    def test_gateway_key_ended(self) -> None:
        """After its end, a session is not cached under its gateway key, and the database returns it as ended."""
        session = self.opened()
        self.find_by_gateway_key(session.id)
        ended = self.do(self.sessions.end(session.id, 0, ()))
        self.assertIsNone(self.find_cached(session.id))
        self.assertEqual(self.find_by_gateway_key(session.id), ended)
        self.assertIsNone(self.find_cached(session.id))

    def test_seen(self) -> None:
        """A request updates the time of last use at once, in every read."""
        session = self.opened()
        self.find_by_token(session.id)
        self.clock.advance(5)
        noted = evolve(session, seen_at=session.seen_at + timedelta(seconds=5))
        self.assertEqual(self.find_by_token(session.id), noted)
        self.assertEqual(self.do(self.sessions.get(session.id)), noted)
        self.assertEqual(self.do(self.sessions.list(True, 10, None)).items, (noted,))

    def test_ended(self) -> None:
        """After its end, a session is returned as ended, by token too, and the end is recorded."""
        session = self.opened()
        self.find_by_token(session.id)
        self.clock.advance(5)
        ended = self.do(self.sessions.end(session.id, 3, (example_event("session.ended"),)))
        self.assertEqual((ended.live, ended.exit_code), (False, 3))
        self.assertEqual(ended.ended_at, NOON + timedelta(seconds=5))
        self.assertEqual(self.find_by_token(session.id), ended)
        self.assertEqual(self.do(self.sessions.get(session.id)), ended)
        self.assertEqual(self.types(), ["session.ended"])

    def test_ended_twice(self) -> None:
        """Ending a session again changes and records nothing."""
        session = self.opened()
        ended = self.do(self.sessions.end(session.id, None, (example_event("session.ended"),)))
        self.clock.advance(5)
        self.assertEqual(self.do(self.sessions.end(session.id, 1, (example_event("again"),))), ended)
        self.assertEqual(self.types(), ["session.ended"])

    def test_ending(self) -> None:
        """The lease, the latest end and the reason of the end are stored."""
        session = evolve(example_session(), leased=True, notes_tools=True, ends_at=NOON + timedelta(hours=1))
        self.do(self.sessions.open(session, _digest("t"), _digest("g"), ()))
        self.assertEqual(self.do(self.sessions.get(session.id)), session)
        ended = self.do(self.sessions.end(session.id, None, (), SessionEnding.ORPHANED))
        self.assertEqual((ended.ending, ended.live), (SessionEnding.ORPHANED, False))
        self.assertEqual(self.do(self.sessions.get(session.id)), ended)

    def test_tally_of_nothing(self) -> None:
        """The tally of a session without runs, or of an unknown session, is empty."""
        self.assertEqual(self.do(self.sessions.tally(self.opened().id)), SessionTally())
        self.assertEqual(self.do(self.sessions.tally("nobody")), SessionTally())

    def test_most_live(self) -> None:
        """At most 64 sessions are live, and an ended one frees its place."""
        for number in range(64):
            self.opened(f"s-{number}")
        self.refused(
            self.sessions.open(example_session(), _digest("t"), _digest("g"), (example_event(),)), LimitExceeded
        )
        self.assertIsNone(self.find_by_token("t"))
        self.assertEqual(self.types(), [])
        self.do(self.sessions.end("s-0", 0, ()))
        self.opened()

    def test_orphans_do_not_count(self) -> None:
        """A session without a request for ten minutes does not count. A later request makes it count again."""
        for number in range(64):
            self.opened(f"s-{number}")
        self.clock.advance(601)
        self.opened("new")
        for number in range(63):
            self.find_by_token(f"s-{number}")
        self.refused(self.sessions.open(example_session("late"), _digest("t"), _digest("g"), ()), LimitExceeded)

    def test_list(self) -> None:
        """Sessions are listed newest first, in pages, with ended ones on request."""
        sessions = [self.opened(f"s-{number}") for number in range(3)]
        self.do(self.sessions.end("s-1", 0, ()))
        self.assertEqual(self.do(self.sessions.list(True, 10, None)).items, (sessions[2], sessions[0]))
        first = self.do(self.sessions.list(False, 2, None))
        second = self.do(self.sessions.list(False, 2, first.cursor))
        self.assertEqual([session.id for session in (*first.items, *second.items)], ["s-2", "s-1", "s-0"])
        self.assertIsNone(second.cursor)
        self.refused(self.sessions.list(False, 2, "x"), InvalidRequest)

    def test_list_without(self) -> None:
        """The ended sessions of one agent can be omitted. Its live ones are listed."""
        sessions = [self.opened(f"s-{number}") for number in range(2)]
        self.do(self.sessions.end("s-1", 0, ()))
        agent = sessions[0].agent
        self.assertEqual(self.do(self.sessions.list(False, 10, None, agent)).items, (sessions[0],))
        self.assertEqual(len(self.do(self.sessions.list(False, 10, None, "another")).items), 2)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def check_chain(records: Sequence[Record], previous_hash: str = GENESIS, after: int = 0) -> int | None:
    """Return the sequence of the first invalid record, or None if all are valid.

    :param records: the records, oldest first.
    :param previous_hash: the hash of the record before the first of C{records}.
    :param after: the sequence of that record.
    """
    verification = Verification((), after=after, previous=previous_hash)
    verification.feed([_to_row(each) for each in records])
    return None if verification.reached == after + len(records) else verification.reached + 1


def _to_row(record: Record) -> Row:
    event, payload = record.event, None if record.salt is None else compact(record.event.payload)
    about = (event.run_id, event.session_id, event.action, event.connector, event.failure_class)
    seal = (record.payload_digest, record.previous_hash, record.hash, record.salt, payload)
    return (record.sequence, event.id, event.type, timestamp(event.at), event.actor.type, event.actor.id, *about, *seal)
