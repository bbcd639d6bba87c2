"""What callers of the writer may rely on.  No thread, no sleep: the pool is stepped by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.model.errors import StoreUnavailable
from aileron.store import Tuning
from aileron.store._dialect import Cursor
from aileron.store._engine import AtEnd, Job
from aileron.store._sqlite import SQLiteConnection, writing_pool
from aileron.store._writer import Writer

_SECRET = "canary-3kP"


def put(cursor: Cursor, text: str) -> str:
    cursor.execute("INSERT INTO rows (text) VALUES (?)", (text,))
    return text


class RunningReactor(UnthreadedReactor):
    """One that already runs: hooks are called at once."""

    def callWhenRunning(self, callable, *args, **kw):  # type: ignore[no-untyped-def]  # noqa: A002, ANN001, ANN002, ANN003, ANN201
        callable(*args, **kw)


class WriterTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.path.touch()
        self.threads = UnthreadedPool()
        self.writer = self.made(Tuning(busy_seconds=0, durable=False))
        self.successResultOf(self.writer.write(lambda cursor: cursor.execute("CREATE TABLE rows (text TEXT)") and None))
        self.threads.hold()

    def made(self, tuning: Tuning) -> Writer:
        pool = writing_pool(self.path, UnthreadedReactor(), lambda *_: self.threads, tuning)
        self.addCleanup(pool.close)
        return Writer(pool, tuning.max_batch)

    def rows(self) -> list[str]:
        """What another connection sees: what is committed."""
        connection = sqlite3.connect(self.path)
        try:
            return [row[0] for row in connection.execute("SELECT text FROM rows ORDER BY rowid")]
        finally:
            connection.close()

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.threads.step()

    def test_shared_commit(self) -> None:
        """A result comes after the commit.  What comes before it begins shares it, in order, so many at most."""
        writer = self.made(Tuning(max_batch=2, busy_seconds=0))
        all_ = [writer.write(put, text) for text in "abcd"]
        self.assertNoResult(all_[0])
        for rows in (["a", "b"], ["a", "b", "c", "d"]):
            self.step()
            self.assertEqual(self.rows(), rows)
            self.assertEqual([each.called for each in all_], [text in rows for text in "abcd"])
        self.assertEqual([self.successResultOf(each) for each in all_], ["a", "b", "c", "d"])
        self.assertFalse(self.threads.todo)

    def test_taken_with_the_lock(self) -> None:
        """What comes while another daemon has the lock is in the batch that waits for it."""
        write = SQLiteConnection.write

        def wait(connection: SQLiteConnection, take: Callable[[], Sequence[Job]], at_end: AtEnd | None) -> list[Any]:
            late.append(self.writer.write(put, "b"))
            return write(connection, take, at_end)

        late: list[Deferred[str]] = []
        self.patch(SQLiteConnection, "write", wait)
        first = self.writer.write(put, "a")
        self.step()
        self.assertEqual([self.successResultOf(each) for each in (first, *late)], ["a", "b"])
        self.assertFalse(self.threads.todo)

    def test_no_lock(self) -> None:
        """If the lock cannot be had, what waits is refused, and does not run later."""
        other = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")
        waiting = [self.writer.write(put, text) for text in "ab"]
        self.step()
        for each in waiting:
            self.failureResultOf(each, StoreUnavailable)
        self.assertFalse(self.threads.todo)
        other.execute("ROLLBACK")
        self.writer.write(put, "c")
        self.step()
        self.assertEqual(self.rows(), ["c"])

    def test_written_when_told(self) -> None:
        """What callers write when they are told shares the next commit."""
        then: list[Deferred[str]] = []
        for text in "abc":
            told = self.writer.write(put, text)
            told.addCallback(lambda said: then.append(self.writer.write(put, said.upper())))
        self.step()
        self.assertEqual(self.rows(), ["a", "b", "c"])
        self.step()
        self.assertEqual(self.rows(), ["a", "b", "c", "A", "B", "C"])
        self.assertEqual([self.successResultOf(each) for each in then], ["A", "B", "C"])

    def test_sql_error_tells_nothing(self) -> None:
        """An error of SQLite is StoreUnavailable; neither SQL nor what was to be written shows in it."""
        refused = self.writer.write(
            lambda cursor: cursor.execute("INSERT INTO nowhere VALUES (?)", (_SECRET,)) and None
        )
        self.step()
        failure = self.failureResultOf(refused, StoreUnavailable)
        self.assertIn("SQLITE_ERROR", str(failure.value))
        self.assertNotIn(_SECRET, failure.getTraceback() + repr(failure.value))
        self.assertNotIn("nowhere", str(failure.value))
        self.assertIsNone(failure.value.__cause__)

    def test_full(self) -> None:
        """A full disk refuses what does not fit and nothing else; what was answered is there."""
        self.threads.release()
        self.successResultOf(self.writer.write(lambda cursor: cursor.execute("PRAGMA max_page_count = 8") and None))
        self.threads.hold()
        self.writer.write(put, "first")
        big = [self.writer.write(put, str(number) * 6000) for number in range(8)]
        small = self.writer.write(put, "small")
        while self.threads.todo:
            self.step()
        for done in big:
            done.addErrback(lambda failure: failure.trap(StoreUnavailable) and None)
        kept = [text for text in map(self.successResultOf, big) if text is not None]
        self.assertTrue(0 < len(kept) < len(big))
        self.assertEqual(self.successResultOf(small), "small")
        self.assertEqual(self.rows(), ["first", *kept, "small"])

    def test_whole_transaction_lost(self) -> None:
        """Where SQLite undoes the whole transaction, the guilty learns it and the others are written again."""
        self.writer.write(put, "first")
        before = self.writer.write(put, "a")
        guilty = self.writer.write(
            lambda cursor: cursor.execute("INSERT OR ROLLBACK INTO rows VALUES (1/0, 2)") and None
        )
        lost = self.writer.write(_roll_back)
        after = self.writer.write(put, "c")
        while self.threads.todo:
            self.step()
        self.failureResultOf(guilty, StoreUnavailable)
        self.failureResultOf(lost, StoreUnavailable)
        self.assertEqual([self.successResultOf(before), self.successResultOf(after)], ["a", "c"])
        self.assertEqual(self.rows(), ["first", "a", "c"])

    def test_cancelled(self) -> None:
        """Cancelling takes a queued function back: it never runs; of one that is written it ends the wait alone."""

        def cancel(cursor: Cursor) -> None:
            for each in (first, second):
                each.cancel()
                self.failureResultOf(each, CancelledError)
            put(cursor, "a")

        first, second, queued = self.writer.write(cancel), self.writer.write(put, "b"), self.writer.write(put, "c")
        queued.cancel()
        self.failureResultOf(queued, CancelledError)
        self.step()
        self.assertFalse(self.threads.todo)
        self.assertEqual(self.rows(), ["a", "b"])

    def test_all_cancelled(self) -> None:
        """If all are cancelled before the writer begins, nothing is written, and the next is."""
        for text in "ab":
            cancelled = self.writer.write(put, text)
            cancelled.cancel()
            self.failureResultOf(cancelled, CancelledError)
        self.step()
        self.assertFalse(self.threads.todo)
        self.writer.write(put, "c")
        self.step()
        self.assertEqual(self.rows(), ["c"])

    def test_close_drains(self) -> None:
        """Closing answers when all that was taken is durable, after its callers were told; nothing more is taken."""
        writer = self.made(Tuning(max_batch=1, busy_seconds=0))
        told: list[str] = []
        for text in "abc":
            writer.write(put, text).addCallback(told.append)
        for _ in range(2):
            writer.close().addCallback(lambda _: told.append("closed"))
        self.failureResultOf(writer.write(put, "d"), StoreUnavailable)
        self.step(2)
        self.assertEqual(told, ["a", "b"])
        self.step()
        self.assertEqual((told, self.rows()), ([*"abc", "closed", "closed"], [*"abc"]))

    def test_given_threads_are_started(self) -> None:
        """A pool that is made while the reactor runs starts the threads that it was given."""
        pool = writing_pool(self.path, RunningReactor(), lambda *_: self.threads, Tuning())
        self.addCleanup(pool.close)
        self.assertTrue(self.threads.started)


def _roll_back(cursor: Cursor) -> None:
    """What SQLite does by itself on some errors."""
    cursor.execute("ROLLBACK")
    raise sqlite3.OperationalError("lost")
