"""Copies a whole store between a SQLite file and a database on a PostgreSQL server, while no daemon uses either.

A copy is complete or is not there: nothing is copied into a place that is not empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.model.errors import Conflict, InvalidRequest, StoreUnavailable

from ._address import ServerAddress
from ._engine import Tuning
from ._migration import migrate, shipped
from .copy import Copy, connect_copy, survey

if TYPE_CHECKING:
    import psycopg

    from ._server import PostgreSQLPool

__all__ = ["Moved", "move_to_file", "move_to_server", "open_server_copy", "settle_file"]

_SLICE = 1000
_FIRST = ("sessions", "runs", "audit_events")
"""Tables to which rows of others refer."""

_TUNING = Tuning(busy_seconds=2.0, stalled_seconds=600.0)


@frozen
class Moved:
    """The result of a copy.

    :ivar rows: the number of copied rows by table.
    """

    rows: Mapping[str, int]


def settle_file(path: Path) -> None:
    """Write what is in the log beside a database into its file, so that the file alone is the whole database.

    :raises StoreUnavailable: if another process uses the file, or it cannot be written.
    """
    log = path.with_name(path.name + "-wal")
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=1.0)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be used: {error}") from None
    if log.exists() and log.stat().st_size:
        raise StoreUnavailable(f"Another process uses {path}.")


def move_to_server(path: Path, address: ServerAddress) -> Moved:
    """Copy the store in the file at C{path}, which stays as it is, to an empty database.

    :raises Conflict: if the database is not empty. It is unchanged.
    :raises InvalidRequest: if the file is not a database of this version, or has what PostgreSQL cannot store.
    :raises StoreUnavailable: if the server cannot be used, or a daemon uses the database.
    """
    _check_version(path)
    with _pool(address) as pool, closing(connect_copy(path)) as source:
        from ._server_schema import is_empty, migrate_server

        connection = _connect(pool)
        if not is_empty(connection):
            raise Conflict(f"The database at {address.url} is not empty. Nothing was copied.")
        source.execute("BEGIN")
        with _told(pool), connection.transaction():
            migrate_server(connection)
            connection.execute("SET LOCAL statement_timeout = 0")
            rows = {table: _fill_server(source, connection, table) for table in _tables(source)}
    return Moved(rows)


def move_to_file(address: ServerAddress, path: Path) -> Moved:
    """Copy the store in a database on a server, which stays as it is, to a new file.

    :raises Conflict: if the file exists.
    :raises InvalidRequest: if the database is not one of this version.
    :raises StoreUnavailable: if the server cannot be used, or a daemon uses the database.
    """
    if path.exists():
        raise Conflict(f"{path} exists. Nothing was copied.")
    made = path.with_name(f"{path.name}.moving")
    made.unlink(missing_ok=True)
    try:
        migrate(made, shipped())
        with _pool(address) as pool, closing(sqlite3.connect(made, isolation_level=None)) as target:
            connection = _connect(pool)
            _check_server_version(connection)
            with _told(pool), connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                connection.execute("SET LOCAL statement_timeout = 0")
                target.execute("BEGIN")
                rows = {table: _fill_file(connection, target, table) for table in _tables(target)}
                target.execute("COMMIT")
        settle_file(made)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    return Moved(rows)


@contextmanager
def open_server_copy(address: ServerAddress) -> Iterator[Copy]:
    """Open the audit record in a database on a server, even while a daemon writes to it.

    :raises InvalidRequest: if the database is not one of this version.
    :raises StoreUnavailable: if the server cannot be used.
    """
    with _pool(address, writes=False) as pool:
        from ._postgresql import PostgreSQLCursor

        connection = _connect(pool)
        _check_server_version(connection)
        with _told(pool):
            yield Copy(lambda: PostgreSQLCursor(connection.cursor(), {}))


@contextmanager
def _pool(address: ServerAddress, *, writes: bool = True) -> Iterator[PostgreSQLPool]:
    """Make a pool whose connection is used in this thread.

    :param writes: whether the connection keeps daemons away, and may write.

    :raises StoreUnavailable: if the package psycopg is not installed.
    """
    try:
        from ._server import PostgreSQLPool
    except ImportError as error:
        from ._store import INSTALL

        raise StoreUnavailable(f"PostgreSQL needs the package psycopg ({error}). {INSTALL}") from None
    pool = PostgreSQLPool(address, UnthreadedReactor(), UnthreadedPool, _TUNING, writes=writes)
    try:
        yield pool
    finally:
        pool.close()


def _connect(pool: PostgreSQLPool) -> psycopg.Connection[Any]:
    with _told(pool):
        connection: psycopg.Connection[Any] = pool.connect()
        return connection


@contextmanager
def _told(pool: PostgreSQLPool) -> Iterator[None]:
    """Within the C{with} block, convert errors of the database to errors with a message for the user."""
    import psycopg

    from ._server import explain

    try:
        yield
    except (psycopg.DataError, UnicodeError) as error:
        raise InvalidRequest(f"PostgreSQL cannot store a text: {type(error).__name__}. Nothing was copied.") from None
    except psycopg.Error as error:
        raise explain(error, pool) from None
    except sqlite3.Error as error:
        raise InvalidRequest(f"The file cannot be read or written: {error}. Nothing was copied.") from None


def _check_version(path: Path) -> None:
    found = survey(path)
    if found.found != found.known:
        raise InvalidRequest(
            f"The database has schema {found.found}, this one {found.known}: start the daemon once, and stop it."
        )


def _check_server_version(connection: psycopg.Connection[Any]) -> None:
    from ._server_schema import find_version

    found, known = find_version(connection), shipped().version
    if found != known:
        raise InvalidRequest(f"The database on the server has schema {found}, this version has {known}.")


def _tables(file: sqlite3.Connection) -> Sequence[str]:
    """Return the names of all tables, those to which others refer first."""
    names = [row[0] for row in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    return [*_FIRST, *(name for name in names if name not in _FIRST)]


def _columns(file: sqlite3.Connection, table: str) -> Sequence[str]:
    return [row[1] for row in file.execute(f"PRAGMA table_info({table})")]


def _fill_server(source: sqlite3.Connection, connection: psycopg.Connection[Any], table: str) -> int:
    columns = _columns(source, table)
    names, order, count = ", ".join(columns), columns[0], 0
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copying,
    ):
        for row in source.execute(f"SELECT {names} FROM {table} ORDER BY {order}"):
            copying.write_row(tuple(row))
            count += 1
    _check_count(connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall(), table, count)
    for column in ("ordinal", "number"):
        if column == columns[0]:
            connection.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}".encode()
            )
    return count


def _fill_file(connection: psycopg.Connection[Any], target: sqlite3.Connection, table: str) -> int:
    columns = _columns(target, table)
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    count = 0
    with connection.cursor(f"moving_{table}") as cursor:
        cursor.itersize = _SLICE
        cursor.execute(f"SELECT {names} FROM {table}".encode())
        while rows := cursor.fetchmany(_SLICE):
            target.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)
            count += len(rows)
    _check_count(target.execute(f"SELECT count(*) FROM {table}").fetchall(), table, count)
    return count


def _check_count(found: Sequence[Sequence[Any]], table: str, count: int) -> None:
    if found[0][0] != count:
        raise StoreUnavailable(f"The table {table} was not copied completely. Nothing was kept.")
