"""The base of tests over a database file, with threads that are stepped by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool
from aileron.store import Store
from aileron.testing import memory_store
from aileron.testing._case import StoreCase


class FileAccess:
    """Reaches the database of a case as another process does."""

    path: Path

    def query(self, statement: str) -> list[Any]:
        """Return the rows of a statement that another connection runs."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While this lasts another process has the database, and nothing can be written."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")


class DatabaseCase(FileAccess, StoreCase, SynchronousTestCase):
    """A path for a database, and the threads of its stores."""

    def setUp(self) -> None:
        self.path, self.threads = Path(self.mktemp()), UnthreadedPool()

    def opened(self) -> Store:
        """Return a store on the file, opened."""
        return memory_store(self, path=self.path, threads=lambda *_: self.threads)

    def finish(self) -> None:
        """Do all that waits; what came together in one commit."""
        while self.threads.todo:
            self.threads.step()
