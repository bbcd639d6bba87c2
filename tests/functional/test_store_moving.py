"""A store is moved whole, forth and back, or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.model.authority import PendingLimits
from aileron.model.errors import Conflict, InvalidRequest, StoreUnavailable
from aileron.model.runs import RunState
from aileron.model.usage import Usage
from aileron.store import Store, read_address
from aileron.store.copy import open_copy
from aileron.store.moving import move_to_file, move_to_server, open_server_copy, settle_file
from aileron.testing import (
    example_ask,
    example_event,
    example_run,
    example_session,
    example_transition,
    memory_store,
    unopened_store,
)
from aileron.testing._case import StoreCase
from tests.cli.daemon import CommandCase
from tests.functional.postgresql import start_server


def read_all(path: Path) -> dict[str, list[Any]]:
    """The rows of all tables of a file."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}


class MovingTests(StoreCase, SynchronousTestCase):
    def setUp(self) -> None:
        self.server = start_server()
        self.name = self.server.make_database()
        self.addCleanup(self.server.drop, self.name)
        self.address = read_address(self.server.url(self.name))
        self.path = Path(self.mktemp())
        store = memory_store(self, path=self.path)
        self.fill(store)
        self.do(store.close())
        settle_file(self.path)

    def fill(self, store: Store) -> None:
        """Put something into most tables."""
        self.do(store.sessions.open(example_session(), bytes(32), bytes(range(32)), (example_event(),)))
        run, _ = self.do(store.runs.receive(example_run(), (), PendingLimits()))
        asked = example_transition(run, RunState.PENDING, events=(example_event(),), ask=example_ask())
        self.do(store.runs.apply(asked))
        store.usage.note("openai", "session-1", Usage(1, 2, 3, None))
        self.do(store.contents.put("é\r\n'\\ \t quoted"))
        self.do(store.watermarks.put("vault", "7"))

    def test_forth_and_back(self) -> None:
        """All rows are the same afterwards, and so is the record; what was copied from is unchanged."""
        before = read_all(self.path)
        self.assertGreater(sum(map(len, before.values())), 7)
        moved = move_to_server(self.path, self.address)
        self.assertEqual(dict(moved.rows), {name: len(rows) for name, rows in before.items()})
        with open_server_copy(self.address) as there, open_copy(self.path) as here:
            self.assertEqual(there.head(), here.head())
            self.assertEqual(list(there.rows()), list(here.rows()))
        back = self.path.with_name("back.db")
        move_to_file(self.address, back)
        self.assertEqual(read_all(back), before)
        self.assertEqual(read_all(self.path), before)
        self.assertEqual(back.stat().st_mode & 0o777, 0o600)

    def test_goes_on(self) -> None:
        """A store on the server goes on where the file ended, with its numbers."""
        move_to_server(self.path, self.address)
        store = unopened_store(self.address)
        self.do(store.open())
        self.do(store.audit.append(example_event()))
        run, _ = self.do(store.runs.receive(example_run("run-2"), (), PendingLimits()))
        self.assertEqual(self.do(store.runs.get("run-2")), run)
        head = self.do(store.audit.head())
        self.assertEqual(head and head[0], 3)
        self.do(store.close())

    def test_not_empty(self) -> None:
        """Nothing is copied into a database or onto a file that is there."""
        move_to_server(self.path, self.address)
        self.assertRaises(Conflict, move_to_server, self.path, self.address)
        before = self.path.read_bytes()
        self.assertRaises(Conflict, move_to_file, self.address, self.path)
        self.assertEqual(self.path.read_bytes(), before)

    def test_used(self) -> None:
        """A database that a daemon uses is neither read nor written."""
        store = unopened_store(self.address)
        self.do(store.open())
        self.assertRaises(StoreUnavailable, move_to_server, self.path, self.address)
        self.assertRaises(StoreUnavailable, move_to_file, self.address, self.path.with_name("other.db"))
        self.do(store.close())

    def test_impossible(self) -> None:
        """Where PostgreSQL cannot store a text, nothing is copied, and the database stays empty."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE watermarks SET value = 'a' || char(0)")
        settle_file(self.path)
        self.assertRaises(InvalidRequest, move_to_server, self.path, self.address)
        with self.server.connect(self.name) as other:
            self.assertEqual(
                other.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'aileron'").fetchall(), [(0,)]
            )

    def test_no_store(self) -> None:
        """An empty database is no store to move back."""
        self.assertRaises(InvalidRequest, move_to_file, self.address, self.path.with_name("other.db"))
        self.assertFalse(self.path.with_name("other.db").exists())

    def test_file_in_use(self) -> None:
        """What lies in the log beside the file is in the file afterwards; a file that is written is refused."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("UPDATE watermarks SET value = '8'")
            other.execute("BEGIN")
            other.execute("SELECT * FROM watermarks").fetchall()
            with closing(sqlite3.connect(self.path, isolation_level=None)) as writer:
                writer.execute("UPDATE watermarks SET value = '9'")
            self.assertRaises(StoreUnavailable, settle_file, self.path)
        settle_file(self.path)
        self.assertIn(("vault", "9"), read_all(self.path)["watermarks"])


class CommandTests(CommandCase):
    """C{aileron store} with a real server."""

    def setUp(self) -> None:
        super().setUp()
        self.server = start_server()
        name = self.server.make_database()
        self.addCleanup(self.server.drop, name)
        self.url = self.server.url(name)
        store = memory_store(self, path=self.home.database)
        self.successResultOf(store._writer.write(store.audit._seals.append, (example_event(), example_event())))  # type: ignore[attr-defined]
        store._pools.close()

    def told(self, *arguments: str) -> str:
        code, out, err = self.command("store", *arguments)
        self.assertEqual(code, 0, err)
        return out

    def test_both_ways(self) -> None:
        """The file is put aside, the record verified on both sides; back, it is a file again."""
        out = self.told("migrate", "--to", self.url)
        self.assertIn("2, verified on both sides", out)
        self.assertEqual((self.home.database.exists(), self.home.moved_database.exists()), (False, True))
        self.assertIn("from record 1 to 2", self.told("verify", self.url))
        code, _, err = self.command("store", "migrate", "--to", self.url)
        self.assertEqual((code, "nothing to copy" in err), (1, True))
        out = self.told("migrate", "--to", "sqlite", "--from", self.url)
        self.assertIn("2, verified on both sides", out)
        with closing(sqlite3.connect(self.home.database)) as file:
            self.assertEqual(file.execute("SELECT count(*) FROM audit_events").fetchall(), [(2,)])

    def test_not_empty(self) -> None:
        """A database that has a store is refused, and the home stays as it was."""
        self.told("migrate", "--to", self.url)
        self.home.moved_database.replace(self.home.database)
        code, _, err = self.command("store", "migrate", "--to", self.url)
        self.assertEqual(code, 1)
        self.assertIn("is not empty", err)
        self.assertTrue(self.home.database.exists())

    def test_broken(self) -> None:
        """A record that is broken is not moved; one that was broken at the server is told of."""
        self.told("migrate", "--to", self.url)
        name = self.url.partition("?")[0].rpartition("/")[2]
        with self.server.connect(name) as other:
            other.execute("SET session_replication_role = replica")
            other.execute("UPDATE audit_events SET type = 'x' WHERE seq = 1")
        code, out, _ = self.command("store", "verify", self.url)
        self.assertEqual(code, 1)
        self.assertIn("record 1", out)
        code, _, err = self.command("store", "migrate", "--to", "sqlite", "--from", self.url)
        self.assertEqual((code, self.home.database.exists()), (1, False))
        self.assertIn("broken at record 1", err)
