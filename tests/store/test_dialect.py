"""The fragments of SQL that differ between databases, as SQLite gives them, and that nothing else differs."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.store._dialect import FALSE
from aileron.store._sqlite import SQLITE, SQLiteCursor

_ONE_DATABASE_ONLY = re.compile(
    r"INSERT OR |\bifnull\(|json_each\(|json_extract\(|json_valid\(|json_type\(|julianday\(|'unixepoch'|\bIS (NOT )?\?"
    r"|\bILIKE\b|::\w|\bunnest\(|\browid\b|\bGLOB\b|\bPRAGMA\b",
)
_OF_ONE_DATABASE = {"_sqlite.py", "_migration.py", "copy.py", "moving.py"}
_OF_ONE_DATABASE |= {"_postgresql.py", "_server.py", "_server_schema.py", "_daemons.py", "_vaults.py", "_listener.py"}


class DialectTests(SynchronousTestCase):
    def setUp(self) -> None:
        connection = sqlite3.connect(":memory:")
        self.addCleanup(connection.close)
        self.cursor = connection.cursor(SQLiteCursor)
        self.cursor.execute("CREATE TABLE rows (key TEXT, text TEXT)")

    def put(self, **rows: str | None) -> None:
        self.cursor.executemany("INSERT INTO rows VALUES (?, ?)", rows.items())

    def keys(self, condition: str, *values: Any) -> list[str]:
        found = self.cursor.execute(f"SELECT key FROM rows WHERE {condition} ORDER BY key", values)
        return [key for (key,) in found.fetchall()]

    def test_among(self) -> None:
        """A list is one value, with any text in it; an empty one is no condition."""
        self.put(a="plain", b='quo"te', c="é, \\", d=None)
        term, value = SQLITE.among("text", ["plain", "é, \\", "elsewhere"])
        self.assertEqual(self.keys(term, value), ["a", "c"])
        self.assertIsNone(SQLITE.among("text", [])[1])

    def test_text_at(self) -> None:
        """What is missing, null, or in no JSON is NULL; false is one of the texts of false."""
        self.put(
            a='{"p": {"s": "shown"}, "b": false}',
            b='{"p": {"s": "other"}, "b": true}',
            c='{"p": null}',
            d="{not JSON",
            e=None,
            f='{"p": {}, "b": 7}',
        )
        self.assertEqual(self.keys(f"{SQLITE.text_at('text', 'p.s')} = ?", "shown"), ["a"])
        self.assertEqual(self.keys(f"{SQLITE.text_at('text', 'p')} IS NOT NULL"), ["a", "b", "f"])
        self.assertEqual(self.keys(f"{SQLITE.text_at('text', 'b')} IN {FALSE}"), ["a"])

    def test_elapsed(self) -> None:
        """Seconds with their fraction, and 0 where the clock was set back."""
        expression = SQLITE.elapsed_seconds("key", "text")
        self.cursor.execute("INSERT INTO rows VALUES ('2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:01.500000Z')")
        self.cursor.execute("INSERT INTO rows VALUES ('2026-01-02T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z')")
        forth, back = (row[0] for row in self.cursor.execute(f"SELECT {expression} FROM rows ORDER BY key"))
        self.assertAlmostEqual(forth, 86_401.5, places=3)
        self.assertEqual(back, 0.0)


class CommonTests(SynchronousTestCase):
    def test_statements(self) -> None:
        """Statements are written in what both databases take: the rest is in the modules of one of them."""
        room = files("aileron.store")
        for entry in room.iterdir():
            if entry.name.endswith(".py") and entry.name not in _OF_ONE_DATABASE:
                found = _ONE_DATABASE_ONLY.search(entry.read_text("utf-8"))
                self.assertIsNone(found, f"{entry.name}: {found}")

    def test_found(self) -> None:
        """The expression finds what it is for."""
        for text in ("INSERT OR REPLACE INTO x", "session_id IS ?", "ifnull(a, b)", "a::bigint", "IN (json_each(?))"):
            self.assertIsNotNone(_ONE_DATABASE_ONLY.search(text), text)

    def test_cursor(self) -> None:
        """Each cursor knows the dialect of its database."""
        with closing(sqlite3.connect(":memory:")) as connection:
            self.assertIs(connection.cursor(SQLiteCursor).dialect, SQLITE)
