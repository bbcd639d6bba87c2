"""What callers of the writer may rely on.  No thread, no sleep: the pool is stepped by hand."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import StoreUnavailable
from aileron.store._connections import Tuning, writing_pool
from aileron.store._writer import Writer
from aileron.testing import UnthreadedPool, UnthreadedReactor

_SECRET = "canary-3kP"


def put(cursor: sqlite3.Cursor, text: str) -> str:
    cursor.execute("INSERT INTO rows (text) VALUES (?)", (text,))
    return text


def put_then_break(cursor: sqlite3.Cursor, text: str) -> str:
    put(cursor, text)
    raise ValueError(text)


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

    def test_after_the_commit(self) -> None:
        """No result, the commit, the result."""
        done = self.writer.write(put, "a")
        self.assertNoResult(done)
        self.step()
        self.assertEqual(self.successResultOf(done), "a")
        self.assertEqual(self.rows(), ["a"])

    def test_shared_commit(self) -> None:
        """Those that come while one is written share the next commit, in the order they came."""
        all_ = [self.writer.write(put, text) for text in "abc"]
        self.step()
        self.assertEqual(self.rows(), ["a"])
        self.assertNoResult(all_[1])
        self.step()
        self.assertEqual([self.successResultOf(each) for each in all_], ["a", "b", "c"])
        self.assertEqual(self.rows(), ["a", "b", "c"])
        self.assertFalse(self.threads.todo)

    def test_written_when_told(self) -> None:
        """What callers write when they are told shares the next commit, with what waited and with one another."""
        then: list[Deferred[str]] = []
        for text in "abc":
            told = self.writer.write(put, text)
            told.addCallback(lambda said: then.append(self.writer.write(put, said.upper())))
        self.step(2)
        self.assertEqual(self.rows(), ["a", "b", "c", "A"])
        self.step()
        self.assertEqual(self.rows(), ["a", "b", "c", "A", "B", "C"])
        self.assertEqual([self.successResultOf(each) for each in then], ["A", "B", "C"])

    def test_told_in_order(self) -> None:
        """Whatever is begun meanwhile, callers are told in the order they came, and of the close at last."""
        told: list[str] = []
        for text in "abcdef":
            self.writer.write(put, text).addCallback(told.append)
        self.writer.close().addCallback(lambda _: told.append("closed"))
        self.threads.release()
        self.assertEqual(told, [*"abcdef", "closed"])

    def test_batch_has_an_end(self) -> None:
        """No more share a commit than may."""
        writer = self.made(Tuning(max_batch=2, busy_seconds=0))
        all_ = [writer.write(put, text) for text in "abcd"]
        self.step(2)
        self.assertEqual(self.rows(), ["a", "b", "c"])
        self.assertNoResult(all_[3])
        self.step()
        self.successResultOf(all_[3])

    def test_own_savepoint(self) -> None:
        """What one raises undoes its own work, reaches its own caller and leaves its neighbours alone."""
        self.writer.write(put, "first")
        before, broken, after = (self.writer.write(f, t) for f, t in ((put, "a"), (put_then_break, "b"), (put, "c")))
        self.step(2)
        self.assertEqual(self.failureResultOf(broken, ValueError).value.args, ("b",))
        self.assertEqual([self.successResultOf(before), self.successResultOf(after)], ["a", "c"])
        self.assertEqual(self.rows(), ["first", "a", "c"])

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

    def test_locked(self) -> None:
        """While another process holds the lock nothing is written, and afterwards it is."""
        other = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")
        refused = self.writer.write(put, "a")
        self.step()
        self.assertIn("SQLITE_BUSY", str(self.failureResultOf(refused, StoreUnavailable).value))
        other.execute("ROLLBACK")
        done = self.writer.write(put, "b")
        self.step()
        self.successResultOf(done)
        self.assertEqual(self.rows(), ["b"])
        self.assertFalse(self.flushLoggedErrors())

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

    def test_cancelled_while_queued(self) -> None:
        """Cancelling takes a queued function back: it never runs."""
        self.writer.write(put, "a")
        queued = self.writer.write(put, "b")
        queued.cancel()
        self.failureResultOf(queued, CancelledError)
        self.step()
        self.assertFalse(self.threads.todo)
        self.assertEqual(self.rows(), ["a"])

    def test_cancelled_while_written(self) -> None:
        """Cancelling afterwards ends the wait, not the write."""
        done = self.writer.write(put, "a")
        done.cancel()
        self.failureResultOf(done, CancelledError)
        self.step()
        self.assertEqual(self.rows(), ["a"])

    def test_close_drains(self) -> None:
        """Closing answers when all that was taken is durable, and nothing more is taken."""
        taken = [self.writer.write(put, text) for text in "ab"]
        closed, again = self.writer.close(), self.writer.close()
        self.failureResultOf(self.writer.write(put, "c"), StoreUnavailable)
        self.step()
        self.assertNoResult(closed)
        self.step()
        self.successResultOf(closed)
        self.successResultOf(again)
        self.assertEqual([self.successResultOf(each) for each in taken], ["a", "b"])
        self.assertEqual(self.rows(), ["a", "b"])

    def test_given_threads_are_started(self) -> None:
        """A pool that is made while the reactor runs starts the threads that it was given."""
        pool = writing_pool(self.path, RunningReactor(), lambda *_: self.threads, Tuning())
        self.addCleanup(pool.close)
        self.assertTrue(self.threads.started)


def _roll_back(cursor: sqlite3.Cursor) -> None:
    """What SQLite does by itself on some errors."""
    cursor.execute("ROLLBACK")
    raise sqlite3.OperationalError("lost")
