"""The contract between a kind of database and the writer and readers: pools of connections that write and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from attrs import define, field, frozen
from twisted.enterprise.adbapi import Connection, ConnectionPool
from twisted.internet.defer import Deferred
from twisted.python.threadpool import ThreadPool

from aileron.model.daemons import ProcessFacts
from aileron.model.errors import StoreUnavailable

from ._dialect import Cursor, RowLookup

T = TypeVar("T")

Threads: TypeAlias = Callable[[int, int], ThreadPool]
"""A function that returns a thread pool with the given minimum and maximum of threads."""

AtEnd: TypeAlias = Callable[[Cursor], Callable[[], None] | None]
"""A function that is called at the end of each transaction, and returns what to call once that is durable, or None."""


@frozen
class Tuning:
    """The settings of a deployment or a test.

    :ivar busy_seconds: how long to wait for another process's lock.
    :ivar durable: whether a commit waits for the disk. Off only if losing the data does not matter.
    :ivar readers: the number of reading threads.
    :ivar max_batch: the maximum number of writes that share a commit.
    :ivar max_pages: the maximum size of SQLite's file in pages, or None for no limit.
    :ivar stalled_seconds: how long a PostgreSQL server waits for the next statement of a transaction before it ends it.
        Time that a statement takes does not count.
    :ivar lost_seconds: how long to ask a PostgreSQL server whether a commit succeeded whose answer was lost.
    :ivar process: this process, as it is shown among the daemons that use the database.
    :ivar several: whether daemons share the database, on a PostgreSQL server. Otherwise this one uses it alone.
    :ivar lease_seconds: how long a daemon among several may be silent before others take its runs.
    """

    busy_seconds: float = 5.0
    durable: bool = True
    readers: int = 2
    max_batch: int = 256
    max_pages: int | None = None
    stalled_seconds: float = 5.0
    lost_seconds: float = 60.0
    process: ProcessFacts = field(factory=ProcessFacts)
    several: bool = False
    lease_seconds: float = 15.0


@define(eq=False)
class Job:
    """A function to be run in a transaction, and who waits for its result."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    done: Deferred[Any]


@define(eq=False)
class RolledBackError(Exception):
    """Raised if the database rolled back the complete transaction while it ran one job."""

    job: Job
    cause: Exception


LOOKUP = "lookup"
"""The attribute of a job's function that has its L{RowLookup}, and returns the value from the arguments."""

F = TypeVar("F", bound=Callable[..., Any])


def looks_up(lookup: RowLookup, value: Callable[..., object]) -> Callable[[F], F]:
    """Return a decorator for functions that find one row first, so that a batch can find all of them at once.

    :param value: returns the value of the lookup from the function's arguments after the cursor.
    """

    def decorate(function: F) -> F:
        setattr(function, LOOKUP, (lookup, value))
        return function

    return decorate


class EngineConnection(Connection):
    """A connection of a pool. Its methods are called in the pool's threads."""

    def own(self) -> Any:
        """Return the connection that the database's driver made."""
        return self._connection

    def pool(self) -> Any:
        """Return the pool."""
        return self._pool

    def replace(self) -> None:
        """Close the driver's connection, and make another.

        :raises Exception: the driver's error, if none can be made.
        """
        self._pool.forget()
        self._connection = self._pool.connect()

    def write(self, take: Callable[[], Sequence[Job]], at_end: AtEnd | None) -> list[Any]:
        """Run jobs in one transaction, and call the function from C{at_end} after the commit.

        If this raises, nothing is stored. Return the outcome of each job. If the jobs take long, only the first ones
        are run, at least one, and only their outcomes are returned.

        :param take: returns the jobs. Called once, when no other transaction can write before this one ends.
        :raises RolledBackError: if one job made the database roll back everything.
        """
        raise NotImplementedError

    def read(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call C{function(cursor, …)} in a transaction that sees the data of one moment, and return its result."""
        raise NotImplementedError


class EnginePool(ConnectionPool):
    """A connection pool on given threads.

    The base class creates its own threads, and starts them at once if the reactor is running.
    """

    def __init__(self, threads: ThreadPool, *args: Any, **kwargs: Any) -> None:
        self._given = threads
        super().__init__(*args, cp_noisy=False, **kwargs)  # type: ignore[no-untyped-call]
        self.threadpool = threads

    def start(self) -> None:
        """Start the given threads."""
        self.threadpool = self._given
        super().start()  # type: ignore[no-untyped-call]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        """Call C{function(connection, …)} in the pool's thread. Return a Deferred of its result."""
        return self.runWithConnection(function, *args, **kwargs)  # type: ignore[no-untyped-call,no-any-return]

    def close(self) -> None:
        """Close the connections and end the threads."""
        super().close()  # type: ignore[no-untyped-call]

    def kept(self) -> Any:
        """Return the database's own connection that this thread has, or None if it has none."""
        return self.connections.get(self.threadID())  # type: ignore[no-untyped-call]

    def forget(self) -> None:
        """Close the connection of this thread, if it has one. The next call makes another."""
        if self.kept() is not None:
            self.disconnect(self.kept())  # type: ignore[no-untyped-call]

    def is_error(self, error: BaseException | None) -> bool:
        """Return True if the database raised the error."""
        raise NotImplementedError

    def refusal(self, cause: BaseException | None) -> StoreUnavailable:
        """Return the error to raise for a failed database call. It has the name of C{cause}, not its text."""
        raise NotImplementedError


DISK_FULL = "The disk that holds the daemon's home is full."


def closing() -> StoreUnavailable:
    """Return the error for calls after the store was closed."""
    return StoreUnavailable("The database is closing.")


class DatabaseRefused(StoreUnavailable):
    """Raised if this version cannot use the database. A retry does not help."""

    retriable = False


class NewerDatabase(DatabaseRefused):
    """Raised if a newer version wrote the database."""


class ForeignDatabase(DatabaseRefused):
    """Raised if the database is not one of Aileron."""
