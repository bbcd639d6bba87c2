"""How a file comes to the schema of this version."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.model.errors import StoreUnavailable
from aileron.store import ForeignDatabase, NewerDatabase, Schema
from aileron.store._migration import migrate, shipped

_ONE = Schema(("CREATE TABLE a (x TEXT) STRICT;",))
_TWO = Schema((*_ONE.steps, "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = x || '!';"))
_BROKEN = Schema((*_ONE.steps, "ALTER TABLE a ADD COLUMN y TEXT; INSERT INTO nowhere VALUES (1);"))


class MigrationTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.path = self.directory / "aileron.db"

    def query(self, sql: str, path: Path | None = None) -> list[Any]:
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    def names(self) -> set[str]:
        return {entry.name for entry in self.directory.iterdir()}

    def old(self) -> None:
        """A file of version 1 with one row."""
        migrate(self.path, _ONE, 0)
        self.query("INSERT INTO a VALUES ('kept')")

    def test_new(self) -> None:
        """A new file has the whole schema, its version, our mark and nobody else's access; nothing lies beside it."""
        migrate(self.path, _TWO, 0)
        self.assertEqual(self.query("SELECT x, y FROM a"), [])
        self.assertEqual(self.query("PRAGMA user_version"), [(2,)])
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.names(), {"aileron.db"})

    def test_new_is_whole_or_not(self) -> None:
        """A new file that cannot be completed does not appear under its name, and the next attempt succeeds."""
        self.assertRaises(StoreUnavailable, migrate, self.path, _BROKEN, 0)
        self.assertFalse(self.path.exists())
        migrate(self.path, _TWO, 0)
        self.assertEqual(self.names(), {"aileron.db"})

    def test_temporary_name_is_no_link(self) -> None:
        """What lies under the temporary name is replaced, never followed."""
        target = self.directory / "target"
        target.write_text("mine")
        self.path.with_name("aileron.db.new").symlink_to(target)
        migrate(self.path, _ONE, 0)
        self.assertEqual(target.read_text(), "mine")
        self.assertFalse(self.path.is_symlink())

    def test_upgrade(self) -> None:
        """An older file is copied aside, whole and as private, with what lies in its log, then stepped up."""
        self.old()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as busy:
            busy.execute("PRAGMA journal_mode = WAL")
            busy.execute("INSERT INTO a VALUES ('late')")
            migrate(self.path, _TWO, 0)
        self.assertEqual(self.query("SELECT x, y FROM a"), [("kept", "kept!"), ("late", "late!")])
        self.assertEqual(self.query("PRAGMA user_version"), [(2,)])
        backup = self.path.with_name("aileron.db.backup-1")
        self.assertEqual(self.query("SELECT * FROM a", backup), [("kept",), ("late",)])
        self.assertEqual(self.query("PRAGMA user_version", backup), [(1,)])
        self.assertEqual(backup.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.names(), {"aileron.db", "aileron.db.backup-1"})

    def test_upgrade_is_whole_or_not(self) -> None:
        """A step that fails leaves the file as the step before left it."""
        self.old()
        self.assertRaises(StoreUnavailable, migrate, self.path, _BROKEN, 0)
        self.assertEqual(self.query("SELECT * FROM a"), [("kept",)])
        self.assertEqual(self.query("PRAGMA user_version"), [(1,)])
        migrate(self.path, _TWO, 0)
        self.assertEqual(self.query("SELECT x, y FROM a"), [("kept", "kept!")])

    def test_newer(self) -> None:
        """A file of a newer version is refused, with both versions, and untouched."""
        migrate(self.path, _TWO, 0)
        before = self.path.read_bytes()
        error = self.assertRaises(NewerDatabase, migrate, self.path, _ONE, 0)
        self.assertEqual(error.details, {"version": 2, "known": 1})
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual(self.names(), {"aileron.db"})

    def test_foreign(self) -> None:
        """Another program's database is refused, and what is no database, and an empty file."""
        self.query("CREATE TABLE theirs (x)")
        self.assertRaises(ForeignDatabase, migrate, self.path, _ONE, 0)
        for content in (b"no database at all" * 300, b""):
            self.path.write_bytes(content)
            self.assertRaises(ForeignDatabase, migrate, self.path, _ONE, 0)
            self.assertEqual(self.path.read_bytes(), content)

    def test_as_it_is(self) -> None:
        """A file of this version stays as it is, without a backup, and closed to others; one that is held waits."""
        self.old()
        self.path.chmod(0o644)
        migrate(self.path, _ONE, 0)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual((self.query("SELECT x FROM a"), self.names()), ([("kept",)], {"aileron.db"}))
        with closing(sqlite3.connect(self.path, isolation_level=None)) as busy:
            busy.execute("BEGIN EXCLUSIVE")
            self.assertRaises(StoreUnavailable, migrate, self.path, _TWO, 0)
        migrate(self.path, _TWO, 0)
        self.assertRaises(StoreUnavailable, migrate, self.directory / "x" / "aileron.db", _ONE, 0)

    def test_shipped(self) -> None:
        """What is shipped makes a sound file, every table of it strict.

        A deferred constraint would fail at the commit, and with it every caller of the batch.
        """
        migrate(self.path, shipped(), 0)
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(self.query("PRAGMA foreign_key_check"), [])
        loose = "SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite%'"
        self.assertEqual(self.query(loose), [])
        self.assertNotIn("DEFERR", "".join(shipped().steps).upper())

    def test_awaiting_credential(self) -> None:
        """A file of the first release keeps every run and what refers to it, and takes the new state."""
        migrate(self.path, Schema(shipped().steps[:1]), 0)
        columns = (
            "id, action, action_version, manifest_digest, arguments, state, gated, effect_key, received_at, changed_at"
        )
        for number, parent in ((1, "NULL"), (2, "'run-1'"), (3, "NULL")):
            self.query(
                f"INSERT INTO runs ({columns}, parent_id, lease_holder) VALUES "
                f"('run-{number}', 'a', '1', 'd', '{{}}', 'approved', 1, 'k', 'now', 'now', {parent}, 'me')"
            )
        self.query("DELETE FROM runs WHERE id = 'run-3'")
        self.query("INSERT INTO run_steps VALUES ('run-1', 's', 0, 'completed', NULL)")
        before = self.query("SELECT * FROM runs")
        indexes = "SELECT name, sql FROM sqlite_schema WHERE tbl_name = 'runs' AND type = 'index' ORDER BY name"
        known = self.query(indexes)
        migrate(self.path, Schema(shipped().steps[:3]), 0)
        self.assertEqual((self.query("SELECT * FROM runs"), self.query(indexes)), (before, known))
        migrate(self.path, shipped(), 0)
        self.assertEqual(self.query("SELECT * FROM runs"), [(*each, None, "", None) for each in before])
        self.assertEqual(self.query("PRAGMA foreign_key_check"), [])
        self.query("UPDATE runs SET state = 'awaiting_credential' WHERE id = 'run-1'")
        with closing(sqlite3.connect(self.path, isolation_level=None)) as strict:
            strict.execute("PRAGMA foreign_keys = ON")
            self.assertRaises(sqlite3.IntegrityError, strict.execute, "DELETE FROM runs WHERE id = 'run-1'")
            self.assertRaises(sqlite3.IntegrityError, strict.execute, "UPDATE runs SET state = 'awaiting'")

    def test_titles(self) -> None:
        """A run of an earlier version gets the title of its approval, if it has one that can be read."""
        migrate(self.path, Schema(shipped().steps[:10]), 0)
        reviews = ('{"title": "Post to #a"}', "{}", '{"title": 7}', "no JSON")
        for number, review in enumerate(reviews):
            self.query(
                "INSERT INTO runs (id, action, action_version, manifest_digest, arguments, state, gated, effect_key,"
                f" received_at, changed_at) VALUES ('{number}', 'a', '1', 'd', '{{}}', 'denied', 1, 'k', 'now', 'now')"
            )
            self.query(
                "INSERT INTO approvals (run_id, digest, review, requested_at) VALUES"
                f" ('{number}', 'd', '{review}', 'now')"
            )
        migrate(self.path, shipped(), 0)
        self.assertEqual(self.query("SELECT title FROM runs ORDER BY id"), [("Post to #a",), ("",), ("",), ("",)])
