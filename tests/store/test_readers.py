"""What callers of the readers may rely on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from twisted.internet.defer import CancelledError
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.model.errors import StoreUnavailable
from aileron.store import Tuning
from aileron.store._connections import MOST_READS, Readers
from aileron.store._dialect import Cursor
from aileron.store._sqlite import reading_pool


def texts(cursor: Cursor) -> list[str]:
    return [text for (text,) in cursor.execute("SELECT text FROM rows")]


class ReadersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.other = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(self.other.close)
        self.other.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE rows (text TEXT); INSERT INTO rows VALUES ('a')"
        )
        self.threads = UnthreadedPool()
        tuning = Tuning(busy_seconds=0)
        pool = reading_pool(self.path, UnthreadedReactor(), lambda *_: self.threads, tuning)
        self.addCleanup(pool.close)
        self.readers = Readers(pool)

    def test_committed(self) -> None:
        """A read sees what was committed before it, and waits for nobody's lock."""
        self.other.execute("BEGIN IMMEDIATE")
        self.other.execute("INSERT INTO rows VALUES ('b')")
        self.assertEqual(self.successResultOf(self.readers.read(texts)), ["a"])
        self.other.execute("COMMIT")
        self.assertEqual(self.successResultOf(self.readers.read(texts)), ["a", "b"])

    def test_one_moment(self) -> None:
        """Two queries of one read see the same moment."""

        def twice(cursor: Cursor) -> tuple[list[str], list[str]]:
            first = texts(cursor)
            self.other.execute("INSERT INTO rows VALUES ('b')")
            return first, texts(cursor)

        self.assertEqual(self.successResultOf(self.readers.read(twice)), (["a"], ["a"]))

    def test_refused(self) -> None:
        """A reader cannot write; an error that is not SQLite's reaches the caller as it is."""

        def write(cursor: Cursor) -> None:
            cursor.execute("INSERT INTO rows VALUES ('b')")

        refused = self.failureResultOf(self.readers.read(write), StoreUnavailable)
        self.assertIn("SQLITE_READONLY", str(refused.value))
        self.assertEqual(self.successResultOf(self.readers.read(texts)), ["a"])
        self.failureResultOf(self.readers.read(lambda cursor: int("x")), ValueError)

    def test_damaged(self) -> None:
        """A damaged file is StoreUnavailable."""
        self.other.close()
        self.path.write_bytes(b"no database at all" * 300)
        self.failureResultOf(self.readers.read(texts), StoreUnavailable)

    def test_given_up(self) -> None:
        """So many are read at once; who gives up a read that has begun is let go, and its turn waits for the thread.

        Who gives up while it waits for its turn is never read.
        """
        self.threads.hold()
        reading = [self.readers.read(texts) for _ in range(MOST_READS + 2)]
        reading[0].cancel()
        self.failureResultOf(reading[0], CancelledError)
        self.assertEqual(len(self.threads.todo), MOST_READS)
        self.threads.step()
        self.assertEqual(len(self.threads.todo), MOST_READS)  # now the next one's among them
        for each in (reading.pop(), reading.pop()):
            each.cancel()
            self.failureResultOf(each, CancelledError)
        closed = self.readers.close()
        for _ in range(MOST_READS):
            self.assertNoResult(closed)
            self.threads.step()
        self.successResultOf(closed)
        for each in reading[1:]:
            self.assertEqual(self.successResultOf(each), ["a"])

    def test_close(self) -> None:
        """Closing answers when the last read has ended, and nothing more is taken."""
        self.threads.hold()
        reading = self.readers.read(texts)
        closed = self.readers.close()
        self.assertNoResult(closed)
        self.failureResultOf(self.readers.read(texts), StoreUnavailable)
        self.threads.release()
        self.assertEqual(self.successResultOf(reading), ["a"])
        self.successResultOf(closed)
        self.successResultOf(self.readers.close())
