"""Connection pools for SQLite, one for writing and one for reading, and reads that wait for no commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from attrs import define, field, frozen
from twisted.enterprise.adbapi import ConnectionPool
from twisted.internet.defer import Deferred, DeferredSemaphore, fail, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from aileron.base.waiting import Waiting
from aileron.model.errors import StoreUnavailable

Threads: TypeAlias = Callable[[int, int], ThreadPool]
"""A function that returns a thread pool with the given minimum and maximum of threads."""


@frozen
class Tuning:
    """The settings of a deployment or a test.

    :ivar busy_seconds: how long to wait for another process's lock.
    :ivar durable: whether a commit waits for the disk. Off only if losing the file does not matter.
    :ivar readers: the number of reading threads.
    :ivar max_batch: the maximum number of writes that share a commit.
    :ivar max_pages: the maximum size of the file in pages, or None for no limit.
    """

    busy_seconds: float = 5.0
    durable: bool = True
    readers: int = 2
    max_batch: int = 256
    max_pages: int | None = None


def writing_pool(path: Path, reactor: Any, threads: Threads, tuning: Tuning) -> ConnectionPool:
    """Return a pool of one thread and one connection for writing."""
    return _pool(path, reactor, threads(1, 1), tuning, _writing(tuning))


def reading_pool(path: Path, reactor: Any, threads: Threads, tuning: Tuning) -> ConnectionPool:
    """Return a pool of connections that cannot write."""
    return _pool(path, reactor, threads(1, tuning.readers), tuning, ("query_only=ON",))


def _writing(tuning: Tuning) -> tuple[str, ...]:
    pragmas = (
        "journal_mode=WAL",
        f"synchronous={'FULL' if tuning.durable else 'OFF'}",
        "fullfsync=ON",
        "foreign_keys=ON",
        "temp_store=MEMORY",  # otherwise savepoints write a file
    )
    return pragmas if tuning.max_pages is None else (*pragmas, f"max_page_count={tuning.max_pages}")


def _pool(path: Path, reactor: Any, threads: ThreadPool, tuning: Tuning, pragmas: tuple[str, ...]) -> ConnectionPool:
    def prepare(connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    return _ConnectionPool(
        threads,
        "sqlite3",
        f"{path.absolute().as_uri()}?mode=rw",  # never creates a file: the migration does
        uri=True,
        isolation_level=None,  # transactions begin explicitly
        check_same_thread=False,  # the pool closes from the reactor's thread
        timeout=tuning.busy_seconds,
        cp_noisy=False,
        cp_openfun=prepare,
        cp_reactor=reactor,
    )


class _ConnectionPool(ConnectionPool):
    """A connection pool on given threads.

    The base class creates its own threads, and starts them at once if the reactor is running.
    """

    def __init__(self, threads: ThreadPool, *args: Any, **kwargs: Any) -> None:
        self._given = threads
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self.threadpool = threads

    def start(self) -> None:
        """Start the given threads."""
        self.threadpool = self._given
        super().start()  # type: ignore[no-untyped-call]


DISK_FULL = "The disk that holds the daemon's home is full."


def refusal(cause: BaseException | None) -> StoreUnavailable:
    """Return the error to raise for a failed database call. It has SQLite's name of C{cause}, not its text."""
    if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StoreUnavailable(DISK_FULL)
    name = getattr(cause, "sqlite_errorname", None) or type(cause).__name__
    return StoreUnavailable(f"The database is not available ({name}).")


def closing() -> StoreUnavailable:
    """Return the error for calls after the store was closed."""
    return StoreUnavailable("The database is closing.")


class DatabaseRefused(StoreUnavailable):
    """Raised if this version cannot use the file. A retry does not help."""

    retriable = False


class NewerDatabase(DatabaseRefused):
    """Raised if a newer version wrote the file."""


class ForeignDatabase(DatabaseRefused):
    """Raised if the file is not a database of Aileron."""


P = ParamSpec("P")
T = TypeVar("T")

MOST_READS = 64
"""The maximum number of concurrent reads.

Others are queued, because all results may arrive in one turn of the reactor.
"""

_log = Logger()


@define(eq=False)
class Readers:
    """Runs functions that only read, each with a cursor.

    :param pool: connections that are C{query_only}.
    """

    _pool: ConnectionPool
    _turns: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_READS), init=False)
    _reading: int = field(default=0, init=False)
    _at_rest: Waiting = field(factory=Waiting, init=False)
    _closed: bool = field(default=False, init=False)

    def read(
        self, function: Callable[Concatenate[sqlite3.Cursor, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """Run C{function(cursor, …)} in a reader's thread, on the data committed before.

        Cancelling before the read starts removes it from the queue. Cancelling later only stops the wait.

        :raises StoreUnavailable: (errback) if the database could not be read, or L{close} was called.
        """
        if self._closed:
            return fail(closing())
        self._reading += 1
        turn = self._turns.acquire()
        return turn.addCallbacks(lambda _: self._in_turn(function, *args, **kwargs), self._note_done)

    def close(self) -> Deferred[None]:
        """Refuse further reads. Fires when the last read has ended. Idempotent."""
        self._closed = True
        return self._at_rest.wait(over=not self._reading)

    def _in_turn(self, *call: Any, **kwargs: Any) -> Deferred[Any]:
        read = maybeDeferred(self._pool.runWithConnection, _at_one_moment, *call, **kwargs)
        return shielded(read.addErrback(_translate).addBoth(self._turn_over))

    def _turn_over(self, result: Any) -> Any:
        self._turns.release()
        return self._note_done(result)

    def _note_done(self, result: Any) -> Any:
        self._reading -= 1
        if not self._reading:
            self._at_rest.fire()
        return result


def _at_one_moment(connection: sqlite3.Connection, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    return function(cursor, *args, **kwargs)


def _translate(failure: Failure) -> Failure:
    if failure.check(sqlite3.Error) is None:
        return failure
    refused = refusal(failure.value)
    _log.error("a read failed: {cause}", cause=refused)
    return Failure(refused)


def shielded(inner: Deferred[T]) -> Deferred[T]:
    """Return a Deferred with the result of C{inner} that can be cancelled without cancelling C{inner}."""
    outer: Deferred[T] = Deferred()

    def pass_on(result: T | Failure) -> None:
        if not outer.called:
            outer.callback(result)

    inner.addBoth(pass_on)
    return outer
