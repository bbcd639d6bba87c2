"""Several daemons on one database: their leases, what they may begin, and what they leave to each other."""

from __future__ import annotations

import select
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.base.unthreaded import UnthreadedPool
from aileron.model.audit import NO_CHECKPOINT, Checkpoint
from aileron.model.authority import PendingLimits
from aileron.model.daemons import ProcessFacts
from aileron.model.errors import AuthorityChanged, LimitExceeded, StateConflict, StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState, Transition
from aileron.model.tool_claims import ToolClaim
from aileron.store import News, Store, Tuning, _daemons
from aileron.store._bulletin import read_notice
from aileron.store._daemons import Daemons, Decided, LeaseEnded
from aileron.store._dialect import Cursor
from aileron.store._listener import _LEADER_LOCK, LOOK_SECONDS
from aileron.store._vaults import SharedVaults
from aileron.testing import (
    check_chain,
    example_ask,
    example_event,
    example_run,
    example_session,
    example_transition,
    unopened_store,
)
from aileron.testing._case import StoreCase
from tests.functional.postgresql import OnServer

_LIMITS = PendingLimits()


def _step(start: RunState, end: RunState, run_id: str = "run-1") -> Transition:
    return example_transition(example_run(run_id, state=start), end)


def _begun(run_id: str = "run-1") -> tuple[Transition, Transition]:
    approved = _step(RunState.RECEIVED, RunState.APPROVED, run_id)
    return approved, _step(RunState.APPROVED, RunState.EXECUTING, run_id)


_BEGUN = _begun()


class SeveralCase(OnServer, StoreCase, SynchronousTestCase):
    """A database, and the stores of daemons that share it."""

    def setUp(self) -> None:
        super().setUp()
        self.path = Path(self.mktemp())
        self.address = self.place_of(self.path)
        ((now,),) = self.query("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)")
        self.clock = Clock()
        self.clock.advance(now)
        self.one, self.other = self.started("one"), self.started("other")

    def unstarted(self, name: str | None, clock: Clock | None = None, **tuning: Any) -> Store:
        """A store that is not open, of a daemon of this name, or of one that is alone."""
        process = ProcessFacts(name or "", "here", 7, "1.0")
        settings = Tuning(busy_seconds=0, durable=False, process=process, several=name is not None, lease_seconds=30)
        settings = attrs.evolve(settings, **tuning)
        store = unopened_store(self.address, clock or self.clock, threads=UnthreadedPool, tuning=settings)
        self.addCleanup(lambda: self.do(store.close()))
        return store

    def stop_all(self) -> None:
        """Close both stores, and wait until the server has ended their sessions."""
        for each in (self.one, self.other):
            self.do(each.close())
        self.server.end_sessions(self._places[self.path.absolute()])

    def started(self, name: str, clock: Clock | None = None) -> Store:
        store = self.unstarted(name, clock)
        self.do(store.open())
        self.do(self.daemons(store).join())
        return store

    def daemons(self, store: Store) -> Daemons:
        assert store.shared is not None
        return store.shared.daemons

    def receive(self, store: Store, run: Run, *transitions: Any) -> Run:
        return self.do(store.runs.receive(run, transitions, _LIMITS))[0]

    def end_lease(self, store: Store) -> None:
        """The database's clock passes the end of a lease."""
        self.query(f"UPDATE daemons SET until = 1 WHERE id = '{self.daemons(store).id}'")

    def left(self, store: Store) -> Sequence[str]:
        return [run.id for run in self.do(self.daemons(store).take_left())]

    def holders(self) -> dict[str, str | None]:
        return dict(self.query("SELECT id, lease_holder FROM runs"))


class LeaseTests(SeveralCase):
    def test_alone(self) -> None:
        """A daemon that is alone is refused while several are there, and they while it is."""
        alone = self.unstarted(None)
        self.refused(alone.open(), StoreUnavailable)
        self.stop_all()
        self.do(alone.open())
        refused = self.refused(self.unstarted("third").open(), StoreUnavailable)
        self.assertIn("store.daemons must be set to several", refused.message)

    def test_listed(self) -> None:
        """Each daemon is listed with its process, lease and unfinished runs, and no more once it has left."""
        self.receive(self.one, example_run(), _BEGUN[0])
        self.receive(self.one, example_run("b"), *_begun("b"))
        self.receive(self.other, example_run("c"), *_begun("c"))
        self.do(self.other.runs.apply(_step(RunState.EXECUTING, RunState.COMPLETED, "c")))
        listed = self.do(self.one.daemons.list())
        self.assertEqual(
            [(each.id, each.runs, each.own) for each in listed], [("one.1", 2, True), ("other.1", 0, False)]
        )
        self.assertEqual(listed[1].process, ProcessFacts("other.1", "here", 7, "1.0"))
        ((version,),) = self.query("SELECT version FROM schema_version")
        self.assertEqual({each.schema for each in listed}, {version})
        self.assertTrue(all(20 < (each.seconds_left or 0) <= 30 for each in listed), listed)
        started = [abs(each.started_at.timestamp() - self.clock.seconds()) for each in listed]
        self.assertLess(max(started), 60)
        self.do(self.daemons(self.other).leave())
        self.assertEqual([each.id for each in self.do(self.one.daemons.list())], ["one.1"])

    def test_held(self) -> None:
        """A run's holder is the daemon that changed it last; what a living daemon holds is not left."""
        run = self.receive(self.one, example_run(), _BEGUN[0])
        self.assertEqual(self.holders(), {run.id: "one.1"})
        waits = _step(RunState.APPROVED, RunState.AWAITING_VAULT)
        self.do(self.other.runs.apply(waits))
        self.assertEqual(self.holders(), {run.id: "other.1"})
        self.assertEqual((self.left(self.one), self.left(self.other)), ([], []))

    def test_ended(self) -> None:
        """A daemon whose lease has ended begins nothing; if nobody noticed, it renews its lease and goes on."""
        approved = self.receive(self.one, example_run(), _BEGUN[0])
        self.end_lease(self.one)
        self.refused(self.one.runs.apply(_BEGUN[1]), LeaseEnded)
        self.refused(self.one.runs.receive(example_run("b"), _begun("b"), _LIMITS), LeaseEnded)
        self.assertTrue(self.do(self.daemons(self.one).renew()))
        self.assertIs(self.do(self.one.runs.apply(_BEGUN[1])).state, RunState.EXECUTING)
        self.assertEqual(self.holders(), {approved.id: "one.1"})

    def test_holds(self) -> None:
        """A daemon that stood still for longer than its lease knows that, without the database, until it renews it."""
        daemons = self.daemons(self.one)
        self.assertTrue(self.one.may_send())
        seconds = _daemons.count_seconds()
        self.patch(_daemons, "count_seconds", lambda: seconds + 31)
        self.assertFalse(self.one.may_send())
        self.assertTrue(self.do(daemons.renew()))
        self.assertTrue(self.one.may_send())

    def test_queued(self) -> None:
        """A run that had not begun is taken by one other daemon alone, and begun by that one alone."""
        run = self.receive(self.one, example_run(), _BEGUN[0])
        third = self.started("third")
        self.end_lease(self.one)
        self.assertEqual((self.left(self.other), self.left(third)), ([run.id], []))
        self.assertEqual(self.holders(), {run.id: "other.1"})
        self.assertFalse(self.do(self.daemons(self.one).renew()))
        self.refused(self.one.runs.apply(_BEGUN[1]), LeaseEnded)
        self.assertIs(self.do(self.other.runs.apply(_BEGUN[1])).state, RunState.EXECUTING)

    def test_taken_over(self) -> None:
        """A run that had begun becomes unknown, by one other daemon; the late end of the first changes nothing."""
        run = self.receive(self.one, example_run(), *_BEGUN)
        third = self.started("third")
        self.end_lease(self.one)
        self.assertEqual((self.left(self.other), self.left(third)), ([run.id], [run.id]))
        unknown = _step(RunState.EXECUTING, RunState.UNKNOWN)
        self.do(self.other.runs.apply(unknown))
        self.refused(third.runs.apply(unknown), StateConflict)
        late = self.refused(self.one.runs.apply(_step(RunState.EXECUTING, RunState.COMPLETED)), StateConflict)
        self.assertIs(late.present.state, RunState.UNKNOWN)
        self.assertEqual((self.left(self.other), self.left(third)), ([], []))

    def test_handed_over(self) -> None:
        """A daemon that stops leaves at once what it has not begun, now and later, and keeps what it executes or
        works on until its lease ends."""
        begun = self.receive(self.one, example_run("run-1"), *_begun("run-1"))
        waiting, kept = (self.receive(self.one, example_run(f"run-{n}")) for n in (2, 3))
        self.assertEqual(self.left(self.other), [])
        self.do(self.daemons(self.one).hand_over([kept.id]))
        self.assertEqual(self.left(self.other), [waiting.id])
        self.do(self.one.runs.apply(_step(RunState.RECEIVED, RunState.APPROVED, kept.id)))
        self.assertEqual(self.left(self.other), [kept.id])
        self.do(self.daemons(self.one).leave())
        self.assertEqual(self.left(self.other), [begun.id])

    def test_ended_in_time(self) -> None:
        """An end that is stored before the run was taken over counts; the other daemon's takeover changes nothing."""
        run = self.receive(self.one, example_run(), *_BEGUN)
        self.end_lease(self.one)
        self.assertEqual(self.left(self.other), [run.id])
        self.do(self.one.runs.apply(_step(RunState.EXECUTING, RunState.COMPLETED)))
        unknown = _step(RunState.EXECUTING, RunState.UNKNOWN)
        self.refused(self.other.runs.apply(unknown), StateConflict)

    def test_anew(self) -> None:
        """A daemon that was taken for gone joins under another id, and what it had begun is not its own any more."""
        run = self.receive(self.one, example_run(), *_BEGUN)
        self.end_lease(self.one)
        self.left(self.other)
        self.assertFalse(self.do(self.daemons(self.one).renew()))
        self.do(self.daemons(self.one).join())
        self.assertEqual(self.daemons(self.one).id, "one.2")
        self.assertEqual(self.left(self.one), [run.id])
        fresh = self.receive(self.one, example_run("b"), *_begun("b"))
        self.assertEqual(self.holders()[fresh.id], "one.2")

    def test_before(self) -> None:
        """Runs of a daemon that was alone before, which have no holder, are taken."""
        run = self.receive(self.one, example_run(), _BEGUN[0])
        self.query("UPDATE runs SET lease_holder = NULL")
        self.assertEqual(self.left(self.other), [run.id])

    def test_clock(self) -> None:
        """A daemon whose clock is an hour off begins nothing, and keeps its lease: that is by the database's clock."""
        for seconds in (-3600.0, 3600.0):
            clock = Clock()
            clock.advance(self.clock.seconds() + seconds)
            wrong = self.started(f"wrong {seconds}", clock)
            refused = self.refused(wrong.runs.receive(example_run(), _BEGUN, _LIMITS), StoreUnavailable)
            self.assertIn("clock", refused.message)
            self.assertTrue(self.do(self.daemons(wrong).renew()))
            self.assertEqual(self.left(wrong), [])
            self.assertEqual(len(self.do(wrong.daemons.list())), 3)
            self.do(self.daemons(wrong).leave())


class DecidedTests(SeveralCase):
    """What the operator decides on one daemon counts for effects of all."""

    def setUp(self) -> None:
        super().setUp()
        self.query("INSERT INTO vaults VALUES ('v', 1, 'first', '')")
        self.known = Decided("v", "first", "paused", None)
        self.daemons(self.one).known = lambda: self.known

    def test_changed(self) -> None:
        """An effect begins only where what is known is what the database has: of the vault, and of pauses."""
        run = self.receive(self.one, example_run(), _BEGUN[0])
        self.do(self.other.watermarks.put("paused", "all"))
        self.refused(self.one.runs.apply(_BEGUN[1]), AuthorityChanged)
        self.known = attrs.evolve(self.known, pauses="all")
        self.query("UPDATE vaults SET authority = 'second'")
        self.refused(self.one.runs.apply(_BEGUN[1]), AuthorityChanged)
        self.known = attrs.evolve(self.known, authority="second")
        self.assertIs(self.do(self.one.runs.apply(_BEGUN[1])).state, RunState.EXECUTING)
        self.assertEqual(self.holders(), {run.id: "one.1"})

    def test_together(self) -> None:
        """Effects of a batch are admitted after one look. What a job of the batch has changed is looked at again."""
        import psycopg

        daemons, execute, counts = self.daemons(self.one), psycopg.Cursor.execute, [0]

        def note(cursor: Any, query: Any, *args: Any, **others: Any) -> Any:
            counts[-1] += 1
            return execute(cursor, query, *args, **others)

        def work(cursor: Cursor) -> None:
            for _ in range(3):
                counts.append(0)
                daemons.admit(cursor)
            cursor.execute("INSERT INTO watermarks (name, value) VALUES ('paused', 'all')")
            self.assertRaises(AuthorityChanged, daemons.admit, cursor)

        self.patch(psycopg.Cursor, "execute", note)
        self.successResultOf(self.one._writer.write(work))
        self.assertEqual(counts[1:3], [2, 0])

    def test_no_vault(self) -> None:
        """If the database has no such vault, nothing begins."""
        self.query("DELETE FROM vaults")
        self.refused(self.one.runs.receive(example_run(), _BEGUN, _LIMITS), AuthorityChanged)
        self.assertEqual(self.do(self.one.runs.unfinished()), ())


class OrderTests(SeveralCase):
    def test_chain(self) -> None:
        """All daemons append to one chain, in the order of their commits."""
        for number in range(6):
            store = (self.one, self.other)[number % 2]
            self.receive(store, example_run(f"run-{number}"), *_begun(f"run-{number}"))
        records = self.do(self.one.audit.list(AuditQuery())).items[::-1]
        self.assertIsNone(check_chain(records))
        self.assertEqual(len(self.do(self.other.audit.list(AuditQuery())).items), len(records))

    def test_key(self) -> None:
        """Two calls with one idempotency key, one on each daemon, are one run."""
        first = self.receive(self.one, example_run("a", idempotency_key="k"), _begun("a")[0])
        stored, created = self.do(self.other.runs.receive(example_run("b", idempotency_key="k"), (), _LIMITS))
        self.assertEqual((stored.id, created), (first.id, False))

    def ask(self, number: int, session: str = "session-1", claim: ToolClaim | None = None) -> Any:
        """A request for approval, in turn at both daemons."""
        run = example_run(f"run-{number}", session_id=session)
        asked = example_transition(run, RunState.PENDING, ask=example_ask(), claim=claim)
        return (self.one, self.other)[number % 2].runs.receive(run, (asked,), PendingLimits(2, 3))

    def test_limits(self) -> None:
        """How many requests may wait counts those of all daemons: of one session, and of all."""
        for number in (0, 1):
            self.do(self.ask(number))
        self.assertIn("session", self.refused(self.ask(2), LimitExceeded).message)
        self.do(self.ask(3, "b"))
        for number in (4, 5):
            self.assertEqual(
                self.refused(self.ask(number, "c"), LimitExceeded).message, "Too many approvals wait for a decision."
            )

    def test_claims(self) -> None:
        """The requests of tools that wait, and their bytes, are those of all daemons, and so are the claims on them."""
        event = example_event("session.started")
        self.do(self.one.sessions.open(example_session(), b"t" * 32, b"g" * 32, (event,)))
        for number in (0, 1):
            self.do(
                self.ask(
                    number,
                    claim=ToolClaim(f"run-{number}", "session-1", "form", 10 + number, utc(self.clock.seconds())),
                )
            )
        for store in (self.one, self.other):
            self.assertEqual(self.do(store.tool_claims.count_open()), {"session-1": (2, 21)})
            self.assertEqual(len(self.do(store.tool_claims.of_session("session-1"))), 2)

    def test_one_at_a_time(self) -> None:
        """While one daemon's batch has not ended, no other daemon writes, whatever the batch has read or changed."""

        def read(cursor: Cursor) -> list[object]:
            rows = cursor.execute("SELECT count(*) FROM runs").fetchall()
            self.refused(self.other.watermarks.put("a", "other"), StoreUnavailable)
            return rows

        self.successResultOf(self.one._writer.write(read))
        self.do(self.other.watermarks.put("a", "other"))
        self.assertEqual(self.do(self.one.watermarks.all())["a"], "other")

    def test_checkpoints(self) -> None:
        """Of two checkpoints that follow the same one, the first is stored: the checkpoints of all are one chain."""
        first = Checkpoint("v", 1, "h1", "t", NO_CHECKPOINT, "k", "s")
        self.assertTrue(self.do(self.one.archive.follow_checkpoint(first)))
        second, late = (Checkpoint("v", 2, head, "t", first.digest, "k", "s") for head in ("a", "b"))
        self.assertTrue(self.do(self.other.archive.follow_checkpoint(second)))
        self.assertFalse(self.do(self.one.archive.follow_checkpoint(late)))
        self.assertEqual(self.do(self.one.archive.latest_checkpoint()), second)

    def test_own_session(self) -> None:
        """A daemon that lost its connection without the server's noticing ends its old session, not another's."""
        pool = self.one._pools.writing
        left = pool.kept()
        pool.connections.clear()
        self.addCleanup(left.close)
        self.do(self.one.watermarks.put("a", "b"))
        import psycopg

        self.assertRaises(psycopg.Error, left.execute, "SELECT 1")
        self.do(self.other.watermarks.put("a", "c"))


class VaultTests(SeveralCase):
    def vaults(self, store: Store) -> SharedVaults:
        assert store.shared is not None
        return store.shared.vaults

    def test_revision(self) -> None:
        """A document is written over the revision that was read alone, and the first one once."""
        one, other = self.vaults(self.one), self.vaults(self.other)
        self.assertIsNone(one.get("v"))
        self.assertEqual((one.put("v", None, 1, "a", b"1"), other.put("v", None, 1, "b", b"2")), (True, False))
        self.assertEqual(other.get("v"), b"1")
        self.assertEqual((other.put("v", 1, 2, "c", b"3"), one.put("v", 1, 2, "d", b"4")), (True, False))
        self.assertEqual((one.get("v"), self.query("SELECT revision, authority FROM vaults")), (b"3", [(2, "c")]))

    def test_waits(self) -> None:
        """A change waits for an effect that is just being begun with what was decided before."""
        vaults = self.vaults(self.other)
        vaults.put("v", None, 1, "a", b"1")
        with self.beside(self.path) as other:
            other.execute("BEGIN; SELECT authority FROM vaults FOR SHARE")
            self.assertRaises(StoreUnavailable, vaults.put, "v", 1, 2, "b", b"2")
            other.execute("ROLLBACK")
        self.assertEqual(self.vaults(self.one).get("v"), b"1")

    def test_away(self) -> None:
        """If the database is away, that is told at once for a while, and then it is tried again."""
        seconds = [0.0]
        vaults = SharedVaults(self.address, "one", lambda: seconds[0])
        self.addCleanup(vaults.close)
        self.assertIsNone(vaults.get("v"))
        self.server.end_sessions(self._places[self.path.absolute()])
        self.assertRaises(StoreUnavailable, vaults.get, "v")
        self.assertRaises(StoreUnavailable, vaults.get, "v")
        seconds[0] = 5.0
        self.assertIsNone(vaults.get("v"))


class ListenerTests(SeveralCase):
    """Notices between daemons. The reactor is stepped by hand."""

    def setUp(self) -> None:
        super().setUp()
        self.heard: dict[Store, list[News]] = {}
        for store in (self.one, self.other):
            self.listen(store)

    def listen(self, store: Store) -> None:
        assert store.shared is not None
        self.heard[store], listener = [], store.shared.listener
        listener.heard = self.heard[store].append
        listener.start()
        self.assertEqual(self.heard[store], [News()])

    def news(self, store: Store, count: int = 1) -> list[News]:
        """What a daemon is told, once that has arrived."""
        assert store.shared is not None
        descriptor = store.shared.listener._descriptor
        assert descriptor is not None
        del self.heard[store][:]
        while len(self.heard[store]) < count and select.select([descriptor], [], [], 10)[0]:
            descriptor.doRead()
        return self.heard[store]

    def test_told(self) -> None:
        """A daemon is told what another one records, in one notice for each batch, and nothing of its own."""
        run = self.receive(self.one, example_run(), *_BEGUN)
        self.assertEqual(self.news(self.other), [News(frozenset({"test.moved"}), frozenset({run.id}), vault=False)])
        self.do(self.other.audit.append(example_event("pause.begun")))
        self.assertEqual(self.news(self.one)[-1], News(frozenset({"pause.begun"}), frozenset(), vault=False))

    def test_left(self) -> None:
        """It is told that another one leaves runs to it, once at its lease's end."""
        daemons = self.daemons(self.one)
        for leave in (daemons.hand_over(()), daemons.leave()):
            self.do(leave)
            self.assertEqual(self.news(self.other)[-1], News(frozenset(), frozenset(), vault=False, left=True))

    def test_vault(self) -> None:
        """It is told that the vault was changed."""
        assert self.one.shared is not None
        self.one.shared.vaults.put("v", None, 1, "a", b"1")
        self.assertEqual(self.news(self.other), [News(frozenset(), frozenset(), vault=True)])

    def test_leads(self) -> None:
        """One daemon leads; when its connection is lost, another does."""
        assert self.one.shared is not None
        assert self.other.shared is not None
        first, second = self.one.shared.listener, self.other.shared.listener
        self.assertEqual((first.leads, second.leads), (True, False))
        first.stop()
        with self.beside(self.path) as other:  # once the server has ended its session
            other.execute("SELECT pg_advisory_lock(%s), pg_advisory_unlock(%s)", [_LEADER_LOCK] * 2)
        assert second._later is not None
        second._later.reset(0)
        second._reactor.advance(0)
        self.assertEqual((first.leads, second.leads), (False, True))

    def test_lost(self) -> None:
        """When the connection was lost, it listens again, and anything may have changed."""
        assert self.other.shared is not None
        listener = self.other.shared.listener
        self.server.end_sessions(self._places[self.path.absolute()])
        while (descriptor := listener._descriptor) is not None and select.select([descriptor], [], [], 10)[0]:
            descriptor.doRead()
        listener._reactor.advance(0)
        self.assertEqual(self.heard[self.other][-1], News())
        self.do(self.one.audit.append(example_event("pause.begun")))
        self.assertEqual(self.news(self.other)[-1].types, frozenset({"pause.begun"}))

    def test_unheard(self) -> None:
        """Every ten seconds anything may have changed, though no notice arrived and the connection seems well."""
        assert self.other.shared is not None
        listener = self.other.shared.listener
        for _ in range(3):
            del self.heard[self.other][:]
            listener._reactor.advance(LOOK_SECONDS - 0.1)
            self.assertEqual(self.heard[self.other], [])
            listener._reactor.advance(0.1)
            self.assertEqual(self.heard[self.other], [News()])

    def test_hangs(self) -> None:
        """A connection whose server has not answered for that long is ended, and then there is a new one."""
        assert self.other.shared is not None
        listener = self.other.shared.listener
        before, listener._connecting = listener._connection, Deferred()
        self.addCleanup(setattr, listener, "_connecting", None)
        listener._look()
        assert before is not None
        self.assertEqual(before.execute("SELECT 1").fetchall(), [(1,)])
        listener._look()
        import psycopg

        self.assertRaises(psycopg.OperationalError, before.execute, "SELECT 1")
        listener._connecting = None
        assert listener._later is not None
        listener._later.reset(0)
        listener._reactor.advance(0)  # finds that it is lost
        listener._reactor.advance(2)
        self.do(self.one.audit.append(example_event("pause.begun")))
        self.assertEqual(self.news(self.other)[-1].types, frozenset({"pause.begun"}))

    def test_odd(self) -> None:
        """A notice that nobody can read is about anything; one of this daemon about nothing."""
        for text in ("", "[]", "null", "{}", '{"daemon": "x", "types": 5}'):
            self.assertEqual(read_notice(text, "own"), News(), text)
        self.assertIsNone(read_notice('{"daemon": "own", "types": []}', "own"))
        many = read_notice('{"daemon": "x", "types": ["a"], "runs": null}', "own")
        self.assertEqual(many, News(frozenset({"a"}), None, vault=False))
