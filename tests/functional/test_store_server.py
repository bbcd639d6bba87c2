"""What is true of the store on a PostgreSQL server alone: one daemon, lost answers, a server that goes away."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.model.authority import PendingLimits
from aileron.model.errors import StateConflict, StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.store import ForeignDatabase, NewerDatabase, Store, Tuning, _server, read_address
from aileron.store._audit_tables import insert_macs
from aileron.store._dialect import Cursor
from aileron.store._runs_table import RUNS
from aileron.testing import check_chain, example_event, example_run, example_transition, unopened_store
from aileron.testing._case import StoreCase
from tests.functional.postgresql import OnServer

_LIMITS = PendingLimits()
_TUNING = Tuning(busy_seconds=0, durable=False)


class ServerCase(OnServer, StoreCase, SynchronousTestCase):
    """A database, and a store that uses it."""

    tuning = _TUNING

    def setUp(self) -> None:
        super().setUp()
        self.path, self.threads = Path(self.mktemp()), UnthreadedPool()
        self.address = self.place_of(self.path)
        self.store = self.made()
        self.do(self.store.open())

    def made(self) -> Store:
        """A store that is not open."""
        store = unopened_store(self.address, threads=lambda *_: self.threads, tuning=self.tuning)
        self.addCleanup(lambda: self.do(store.close()))
        return store

    def count(self) -> int:
        return len(self.do(self.store.audit.list(AuditQuery())).items)

    def end_sessions(self) -> None:
        self.server.end_sessions(self._places[self.path.absolute()])


class OneDaemonTests(ServerCase):
    def test_second(self) -> None:
        """A second daemon is refused, in words, and takes the database once the first has gone."""
        second = self.made()
        refused = self.refused(second.open(), StoreUnavailable)
        self.assertIn("Another daemon uses the database", refused.message)
        self.do(self.store.close())
        self.end_sessions()
        self.do(second.open())

    def test_taken_meanwhile(self) -> None:
        """A daemon that lost its connection, while another took the database, writes nothing more."""
        self.end_sessions()
        second = self.made()
        self.do(second.open())
        self.refused(self.store.audit.append(example_event()), StoreUnavailable)
        self.assertEqual(self.count(), 0)
        self.do(second.close())
        self.end_sessions()
        self.do(self.store.audit.append(example_event()))

    def test_own_session_left(self) -> None:
        """A daemon that lost its connection without the server's noticing ends that session, and goes on."""
        pool = self.store._pools.writing
        left = pool.kept()
        pool.connections.clear()
        self.addCleanup(left.close)
        self.do(self.store.audit.append(example_event()))
        self.assertEqual(self.count(), 1)

    def test_stopped_in_a_transaction(self) -> None:
        """A daemon that stops within a transaction loses it and its lock; another begins, and the first is refused."""
        self.do(self.store.close())
        self.end_sessions()
        stalled = attrs.evolve(_TUNING, stalled_seconds=0.1, lost_seconds=0)
        stopped = unopened_store(self.address, threads=UnthreadedPool, tuning=stalled)
        self.addCleanup(lambda: self.do(stopped.close()))
        self.do(stopped.open())
        other = unopened_store(self.address, threads=UnthreadedPool, tuning=attrs.evolve(_TUNING, busy_seconds=30))
        self.addCleanup(lambda: self.do(other.close()))

        def stop(cursor: Cursor) -> None:
            cursor.execute("INSERT INTO watermarks (name, value) VALUES ('a', 'b')")
            self.do(other.open())  # waits until the lock is free

        self.failureResultOf(stopped._writer.write(stop), StoreUnavailable)
        self.assertEqual(self.do(other.watermarks.all()), {})
        self.do(other.watermarks.put("a", "c"))


class LostTests(ServerCase):
    """A commit whose answer was lost is looked up."""

    tuning = Tuning(busy_seconds=0)

    def lose(self, when: str) -> None:
        """Let the connection end at the next commit, before or after the server has done it."""
        import psycopg

        execute = psycopg.Connection.execute

        def cut(connection: Any, query: Any, *args: Any, **others: Any) -> Any:
            if query != "COMMIT":
                return execute(connection, query, *args, **others)
            self.patch(psycopg.Connection, "execute", execute)
            if when == "after":
                execute(connection, query, *args, **others)
            self.end_sessions()
            return execute(connection, "SELECT 1")  # the answer that does not come

        self.patch(psycopg.Connection, "execute", cut)

    def test_after(self) -> None:
        """It had succeeded: the caller gets its result, and the chain goes on."""
        self.lose("after")
        self.do(self.store.audit.append(example_event()))
        self.do(self.store.audit.append(example_event()))
        records = self.do(self.store.audit.list(AuditQuery())).items[::-1]
        self.assertEqual(len(records), 2)
        self.assertIsNone(check_chain(records))

    def test_before(self) -> None:
        """It had not: the caller is refused, and nothing is there."""
        self.lose("before")
        self.refused(self.store.audit.append(example_event()), StoreUnavailable)
        self.assertEqual(self.count(), 0)
        self.do(self.store.audit.append(example_event()))

    def test_killed_between(self) -> None:
        """Connections that the server ended while nobody used them are replaced without an error."""
        self.do(self.store.audit.append(example_event()))
        self.end_sessions()
        self.do(self.store.audit.append(example_event()))
        self.end_sessions()
        self.assertEqual(self.count(), 2)

    def test_killed_within(self) -> None:
        """A connection that ends within a transaction refuses the batch, and the next one is written."""

        def end(cursor: Cursor) -> None:
            cursor.execute("DELETE FROM watermarks")
            self.end_sessions()
            cursor.execute("DELETE FROM watermarks")

        self.failureResultOf(self.store._writer.write(end), StoreUnavailable)
        self.do(self.store.audit.append(example_event()))

    def test_away(self) -> None:
        """While the server is away all is refused, and afterwards all works; what was stored is there."""
        run, _ = self.do(self.store.runs.receive(example_run(), (), _LIMITS))
        self.server.control("stop", "-m", "immediate")
        try:
            for _ in range(2):
                self.refused(self.store.runs.get(run.id), StoreUnavailable)
                self.refused(self.store.runs.apply(example_transition(run, RunState.APPROVED)), StoreUnavailable)
        finally:
            self.server.control("start")
        self.assertEqual(self.do(self.store.runs.get(run.id)), run)
        self.do(self.store.runs.apply(example_transition(run, RunState.APPROVED)))


class TogetherTests(ServerCase):
    """A batch is written in few statements."""

    def statements(self) -> list[str]:
        """Count what is executed from now on."""
        import psycopg

        execute, found = psycopg.Cursor.execute, []

        def note(cursor: Any, query: Any, *args: Any, **others: Any) -> Any:
            found.append(query)
            return execute(cursor, query, *args, **others)

        self.patch(psycopg.Cursor, "execute", note)
        return found

    def test_few_statements(self) -> None:
        """Forty runs that are received in one batch cost no more statements than two."""
        self.do(self.store.audit.append(example_event()))  # also reads the types of the columns
        costs = []
        for name, number in (("a", 2), ("b", 40)):
            self.threads.hold()
            self.do_later = [
                Deferred.fromCoroutine(
                    self.store.runs.receive(
                        example_run(f"{name}-{each}"),
                        (
                            example_transition(
                                example_run(f"{name}-{each}"), RunState.APPROVED, events=(example_event(),)
                            ),
                        ),
                        _LIMITS,
                    )
                )
                for each in range(number)
            ]
            found = self.statements()
            self.threads.release()
            costs.append(len(found))
            for each in self.do_later:
                self.successResultOf(each)
        self.assertEqual(costs[0], costs[1])
        self.assertLess(costs[1], 10)
        self.assertEqual(self.count(), 43)

    def test_any_value(self) -> None:
        """Values that are written by one statement are read as they were, whatever is in them."""
        texts = ['"', "\\", '\\"', "{a,b}", "NULL", "", None, "'; DELETE FROM runs; --", "\\x00", "é\n\t \u2028"]
        runs = [
            attrs.evolve(example_run(f"run-{number}"), reason=text, arguments={"é": [text, 1.5, '\\"']})
            for number, text in enumerate(texts)
        ]
        self.do(self.store.audit.append(*(example_event() for _ in runs)))

        def write(cursor: Cursor) -> None:
            RUNS.insert(cursor, runs)
            insert_macs(cursor, [(number, f"{text}", b'\\\x00"') for number, text in enumerate(texts, 1)])

        executed = self.statements()
        self.successResultOf(self.store._writer.write(write))
        self.assertNotIn("SAVEPOINT job", executed, "written one by one")
        self.assertEqual([self.do(self.store.runs.get(run.id)) for run in runs], runs)
        kept = self.do(self.store.archive.macs(0, 100))
        self.assertEqual([(each.period, each.mac) for each in kept], [(f"{text}", b'\\\x00"') for text in texts])

    def test_one_fails(self) -> None:
        """One that fails in the database does not disturb the others of its batch."""
        event = example_event()
        self.do(self.store.audit.append(event))
        run, _ = self.do(self.store.runs.receive(example_run(), (), _LIMITS))
        moved = example_transition(run, RunState.APPROVED)
        self.threads.hold()
        first = Deferred.fromCoroutine(self.store.audit.append(example_event()))
        self.threads.step()
        writes = [
            Deferred.fromCoroutine(each)
            for each in (
                self.store.audit.append(example_event()),
                self.store.runs.apply(moved),
                self.store.audit.append(example_event(), event),  # its identifier is there already
                self.store.runs.apply(moved),
                self.store.audit.append(example_event()),
            )
        ]
        self.threads.release()
        self.successResultOf(first)
        self.successResultOf(writes[0])
        self.successResultOf(writes[1])
        self.failureResultOf(writes[2], StoreUnavailable)
        self.failureResultOf(writes[3], StateConflict)
        self.successResultOf(writes[4])
        records = self.do(self.store.audit.list(AuditQuery())).items[::-1]
        self.assertEqual(len(records), 5)
        self.assertIsNone(check_chain(records))

    def test_long(self) -> None:
        """Jobs that together take longer than a batch may are committed in several batches, in order, each once."""

        def put(cursor: Cursor, name: str) -> str:
            cursor.execute("INSERT INTO watermarks (name, value) VALUES (?, ?)", (name, ""))
            return name

        self.patch(_server, "BATCH_SECONDS", 0.0)
        self.threads.hold()
        told = [self.store._writer.write(put, name) for name in "abcd"]
        cancelled = self.store._writer.write(put, "e")
        self.threads.step()  # the first goes alone, and the others are the next batch
        cancelled.cancel()
        self.failureResultOf(cancelled, CancelledError)
        for done in (1, 2, 3):
            self.assertEqual([each.called for each in told], [True] * done + [False] * (4 - done))
            self.threads.step()
        self.assertEqual([self.successResultOf(each) for each in told], [*"abcd"])
        self.threads.release()
        self.assertEqual([*self.do(self.store.watermarks.all())], [*"abcd"])

    def test_settings(self) -> None:
        """A reader cannot write; neither waits for ever."""
        self.failureResultOf(
            self.store._readers.read(lambda cursor: cursor.execute("DELETE FROM watermarks") and None),
            StoreUnavailable,
        )

        def show(cursor: Cursor) -> list[str]:
            return [
                cursor.execute(f"SELECT current_setting('{name}')").fetchone()[0]
                for name in ("search_path", "idle_in_transaction_session_timeout", "lock_timeout")
            ]

        self.assertEqual(self.successResultOf(self.store._writer.write(show)), ["aileron", "5s", "1ms"])

    def test_append_only(self) -> None:
        """The record can be neither changed nor emptied."""
        self.do(self.store.audit.append(example_event()))
        for statement in (
            "UPDATE audit_events SET type = 'x'",
            "DELETE FROM audit_events",
            "TRUNCATE audit_events CASCADE",
        ):
            self.failureResultOf(self.store._writer.write(_execute, statement), StoreUnavailable)
        self.assertEqual(self.count(), 1)


def _execute(cursor: Cursor, statement: str) -> None:
    cursor.execute(statement)


class SchemaTests(ServerCase):
    def test_newer(self) -> None:
        """A database of a newer version is refused, and unchanged."""
        self.do(self.store.close())
        self.end_sessions()
        self.query("UPDATE schema_version SET version = 9999")
        try:
            self.refused(self.made().open(), NewerDatabase)
            self.assertEqual(self.query("SELECT version FROM schema_version"), [(9999,)])
        finally:
            from aileron.store._server_schema import steps

            self.query(f"UPDATE schema_version SET version = {max(steps())}")

    def test_foreign(self) -> None:
        """A schema of the same name that is not ours is refused."""
        name = self.server.make_database()
        with self.server.connect(name) as connection:
            connection.execute("CREATE SCHEMA aileron")
            connection.execute("CREATE TABLE aileron.other (x int)")
        store = unopened_store(read_address(self.server.url(name)), tuning=_TUNING)
        self.refused(store.open(), ForeignDatabase)
        self.do(store.close())
        self.server.drop(name)

    def test_no_database(self) -> None:
        """The server's own words say why a database cannot be used, when the daemon starts."""
        store = unopened_store(read_address(self.server.url("nowhere")), tuning=_TUNING)
        refused = self.refused(store.open(), StoreUnavailable)
        self.assertIn('database "nowhere" does not exist', refused.message)
        self.do(store.close())

    def test_no_password(self) -> None:
        """If the server asks for a password and none is given, the error says where to put it."""
        import psycopg

        from aileron.store._server import PostgreSQLPool, explain

        words = "connection failed: fe_sendauth: no password supplied"
        address = read_address(self.server.url("any"))
        pool = PostgreSQLPool(address, UnthreadedReactor(), UnthreadedPool, _TUNING, writes=False)
        self.addCleanup(pool.close)
        self.assertIn("--password-file", explain(psycopg.OperationalError(words), pool).message)

    def test_same_tables(self) -> None:
        """Both databases have the same tables, columns, keys and indexes, at the same version."""
        from aileron.store._migration import shipped
        from aileron.store._server_schema import steps

        self.assertEqual(max(steps()), shipped().version)
        with closing(sqlite3.connect(":memory:")) as file:
            for step in shipped().steps:
                file.executescript(step)
            here = {
                (table, name, bool(required or key))
                for (table,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
                for _, name, _, required, _, key in file.execute(f"PRAGMA table_info({table})").fetchall()
            }
            indexes = {
                name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql > ''")
            }
            unique = {
                (table, tuple(sorted(column for _, _, column in file.execute(f"PRAGMA index_info({index})"))))
                for (table,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
                for _, index, is_unique, *_ in file.execute(f"PRAGMA index_list({table})").fetchall()
                if is_unique
            }
        there = {
            (table, name, required)
            for table, name, required in self.query(
                "SELECT table_name, column_name, is_nullable = 'NO' FROM information_schema.columns"
                " WHERE table_schema = 'aileron' AND table_name NOT IN ('schema_version', 'schema_steps')"
            )
        }
        self.assertEqual(there, here)
        found = {name for (name,) in self.query("SELECT indexname FROM pg_indexes WHERE schemaname = 'aileron'")}
        self.assertEqual(indexes - found, set())
        keys = {
            (table, tuple(sorted(columns)))
            for table, columns in self.query(
                "SELECT CAST(indrelid AS regclass)::text, array_agg(attname::text) FROM pg_index"
                " JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)"
                " JOIN pg_class ON pg_class.oid = indrelid"
                " WHERE indisunique AND relnamespace = 'aileron'::regnamespace"
                " GROUP BY indrelid, indexrelid"
            )
        }
        self.assertEqual(unique - keys, set())

    def test_sorted_by_bytes(self) -> None:
        """Texts sort by their bytes, whatever order the database has."""
        wrong = self.query(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'aileron' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'"
        )
        self.assertEqual(wrong, [])
