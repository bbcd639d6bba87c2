"""SQLite: its dialect, its cursor, and its connection pools, one for writing and one for reading."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from twisted.python.threadpool import ThreadPool

from aileron.base.json import compact
from aileron.model.errors import StoreUnavailable

from ._dialect import Insertion, RowLookup, RowUpdate, SQLDialect
from ._engine import DISK_FULL, AtEnd, EngineConnection, EnginePool, Job, RolledBackError, Threads, Tuning

T = TypeVar("T")


def _encode_list(values: Sequence[str]) -> str:
    return compact(list(values))


SQLITE = SQLDialect(
    membership="{column} IN (SELECT value FROM json_each(?))",
    encode_list=_encode_list,
    elapsed="max(0.0, (julianday({end}) - julianday({start})) * 86400)",
    json_text="CASE WHEN json_valid({column}) THEN CAST(json_extract({column}, '$.{path}') AS TEXT) END",
    now="((julianday('now') - 2440587.5) * 86400.0)",
    erasing=("PRAGMA secure_delete=ON", "PRAGMA secure_delete=OFF"),
)


class SQLiteCursor(sqlite3.Cursor):
    """A cursor that executes everything at once."""

    dialect = SQLITE

    def insert(self, insertion: Insertion, rows: Iterable[Sequence[Any]], /) -> None:
        """Insert the rows."""
        self.executemany(insertion.statement, rows)

    def update(self, update: RowUpdate, row: Sequence[Any], /) -> bool:
        """Update one row. Return whether it was there."""
        return self.execute(update.statement, row).rowcount == 1

    def last_pending(self, table: str, /) -> None:
        """Return None: there are never pending rows."""

    def settle(self, table: str, column: str, value: object, /) -> None:
        """Do nothing: there are never pending rows."""

    def find(self, lookup: RowLookup, value: object, /) -> Any:
        """Return the row with a value in a unique column, or None if there is none."""
        return self.execute(lookup.statement, (value,)).fetchone()

    def read_once(self, tables: Sequence[str], statement: str, parameters: Sequence[Any], /) -> Any:
        """Return the first row of a C{SELECT}, or None if there is none."""
        return self.execute(statement, parameters).fetchone()


class SQLiteConnection(EngineConnection):
    """A connection to a file."""

    def write(self, take: Callable[[], Sequence[Job]], at_end: AtEnd | None) -> list[Any]:
        connection: sqlite3.Connection = self.own()
        cursor = connection.cursor(SQLiteCursor)
        cursor.execute("BEGIN IMMEDIATE")
        outcomes = [_attempt(connection, cursor, job) for job in take()]
        durable = None if at_end is None else at_end(cursor)
        connection.commit()
        if durable is not None:
            durable()
        return outcomes

    def read(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        cursor = self.own().cursor(SQLiteCursor)
        cursor.execute("BEGIN")
        return function(cursor, *args, **kwargs)


def _attempt(connection: sqlite3.Connection, cursor: SQLiteCursor, job: Job) -> Any:
    cursor.execute("SAVEPOINT job")
    try:
        value = job.function(cursor, *job.arguments)
    except Exception as error:  # noqa: BLE001 - the exception is passed to the caller, and the other jobs continue
        if not connection.in_transaction:
            raise RolledBackError(job, error) from None
        cursor.execute("ROLLBACK TO job")
        cursor.execute("RELEASE job")
        return refusal(error) if isinstance(error, sqlite3.Error) else error
    cursor.execute("RELEASE job")
    return value


class SQLitePool(EnginePool):
    """A pool of connections to one file."""

    connectionFactory = SQLiteConnection

    def is_error(self, error: BaseException | None) -> bool:
        return isinstance(error, sqlite3.Error)

    def refusal(self, cause: BaseException | None) -> StoreUnavailable:
        return refusal(cause)


def writing_pool(path: Path, reactor: Any, threads: Threads, tuning: Tuning) -> SQLitePool:
    """Return a pool of one thread and one connection for writing."""
    return _pool(path, reactor, threads(1, 1), tuning, _writing(tuning))


def reading_pool(path: Path, reactor: Any, threads: Threads, tuning: Tuning) -> SQLitePool:
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


def _pool(path: Path, reactor: Any, threads: ThreadPool, tuning: Tuning, pragmas: tuple[str, ...]) -> SQLitePool:
    def prepare(connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    return SQLitePool(
        threads,
        "sqlite3",
        f"{path.absolute().as_uri()}?mode=rw",  # never creates a file: the migration does
        uri=True,
        isolation_level=None,  # transactions begin explicitly
        check_same_thread=False,  # the pool closes from the reactor's thread
        timeout=tuning.busy_seconds,
        cp_openfun=prepare,
        cp_reactor=reactor,
    )


def refusal(cause: BaseException | None) -> StoreUnavailable:
    """Return the error to raise for a failed database call. It has SQLite's name of C{cause}, not its text."""
    if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StoreUnavailable(DISK_FULL)
    name = getattr(cause, "sqlite_errorname", None) or type(cause).__name__
    return StoreUnavailable(f"The database is not available ({name}).")
