"""Reads the audit record in a database file or its copy without a daemon, and creates such copies.

The file itself is never written. A file that others had access to may contain anything: it is read as plain rows and
verified elsewhere.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from attrs import frozen

from aileron.model.audit import Checkpoint, Row
from aileron.model.errors import InvalidRequest, NotFound
from aileron.model.runs import RunState

from . import _audit_tables as tables
from ._dialect import Cursor
from ._migration import APPLICATION_ID, shipped
from ._runs_table import count_by_state
from ._sqlite import SQLiteCursor

__all__ = ["Copy", "Survey", "back_up", "connect_copy", "is_database", "open_copy", "survey"]

_TABLES = ("audit_events", "audit_payloads", "audit_checkpoints")
_SLICE = 2000
_MAGIC = b"SQLite format 3\0"


@frozen
class Copy:
    """A reader of the audit record in one database."""

    _cursor: Callable[[], Cursor]

    def checkpoints(self, after: int = 0, until: int | None = None) -> tuple[Checkpoint, ...]:
        """Return checkpoints of records after the sequence C{after}, up to C{until}, in order."""
        return tables.checkpoints(self._cursor(), after, until)

    def head(self) -> tuple[int, str] | None:
        """Return the sequence and hash of the newest record, or None if there is none."""
        return tables.head(self._cursor())

    def at(self, sequence: int) -> str | None:
        """Return the hash of one record, or None if there is no such record."""
        return tables.hash_at(self._cursor(), sequence)

    def bounds(self, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """Return the sequence before the first record of a period, and that of its last."""
        return tables.bounds(self._cursor(), since, until)

    def rows(self, after: int = 0, until: int | None = None) -> Iterator[list[Row]]:
        """Yield the records after the sequence C{after}, up to C{until}, oldest first, in slices.

        :raises InvalidRequest: if the file is damaged at the next record.
        """
        while rows := self._slice(after, until):
            yield rows
            after = rows[-1][0]

    def _slice(self, after: int, until: int | None, size: int = _SLICE) -> list[Row]:
        try:
            return tables.rows(self._cursor(), after, size, until)
        except (sqlite3.Error, OverflowError) as error:
            if size > 1 and type(error) is sqlite3.DatabaseError:
                return self._slice(after, until, size // 2)  # up to the record that cannot be read
            raise InvalidRequest(f"The database cannot be read: {error}") from error


@frozen
class Survey:
    """The versions and runs of a database, for an upgrade.

    :ivar found: the version of its schema.
    :ivar known: the version that this release migrates it to.
    :ivar runs: the number of runs in each state, empty for a newer database.
    """

    found: int
    known: int
    runs: Mapping[RunState, int]


def is_database(path: Path) -> bool:
    """Return True if the file at C{path} begins like a SQLite database.

    :raises NotFound: if the file does not exist or cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.") from error


@contextmanager
def open_copy(path: Path) -> Iterator[Copy]:
    """Open the audit record in the database at C{path}, even while a daemon writes to it.

    :raises InvalidRequest: if the file is not a database of Aileron, or cannot be read.
    """
    with closing(connect_copy(path)) as connection:
        yield Copy(lambda: connection.cursor(SQLiteCursor))


def survey(path: Path) -> Survey:
    """Return the version and the run counts of the database at C{path}, even while a daemon writes to it.

    Unlike L{open_copy}, this creates no files of a write-ahead log beside a database that no process has open.

    :raises InvalidRequest: if the file is not a database of Aileron, or cannot be read.
    """
    known = shipped().version
    try:
        with closing(_connect(path, _check_mark, trace=False)) as connection:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            return Survey(found, known, {} if found > known else count_by_state(connection.cursor(SQLiteCursor)))
    except (sqlite3.Error, ValueError) as error:
        raise InvalidRequest(f"{path} cannot be read as a database: {error}") from error


def back_up(path: Path, target: Path) -> None:
    """Copy a consistent snapshot of the database at C{path}, even while a daemon writes to it.

    :param target: the new file, readable only by this user.
    :raises FileExistsError: if C{target} exists already.
    :raises InvalidRequest: if C{path} is not a database of Aileron, or cannot be read.
    :raises OSError: if C{target} cannot be created.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        with closing(_connect(path)) as connection, closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
    except sqlite3.Error as error:
        raise InvalidRequest(f"{path} cannot be copied: {error}") from error


def _check_mark(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file is marked as a database of Aileron.

    :raises InvalidRequest: if it is not.
    """
    (ours,) = connection.execute("PRAGMA application_id").fetchone()
    if ours != APPLICATION_ID:
        raise InvalidRequest(f"{path} is no database of Aileron.")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Make the connection read-only, and check that the record's tables are no views, which could return anything.

    :raises InvalidRequest: if the file is not marked as a database of Aileron, or has no such tables.
    """
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    (ours,) = connection.execute("PRAGMA application_id").fetchone()
    found = dict(connection.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')"))
    if ours != APPLICATION_ID or any(found.get(name) != "table" for name in _TABLES):
        raise InvalidRequest(f"{path} holds no record of Aileron.")


def connect_copy(path: Path) -> sqlite3.Connection:
    """Return a connection that can only read the database at C{path}.

    :raises InvalidRequest: if the file is not a database of Aileron, or cannot be read.
    """
    try:
        return _connect(path)
    except sqlite3.Error as error:
        raise InvalidRequest(f"{path} cannot be read as a database: {error}") from error


def _connect(
    path: Path, check: Callable[[sqlite3.Connection, Path], None] = _check, *, trace: bool = True
) -> sqlite3.Connection:
    # The index of a log cannot be created for a copy in a read-only directory. Without a log, no index is needed.
    log = path.with_name(path.name + "-wal")
    modes = ("mode=ro",) if log.exists() else ("mode=ro", "immutable=1") if trace else ("immutable=1",)
    for mode in modes:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=5.0)
        connection.row_factory = sqlite3.Row
        try:
            check(connection, path)
        except sqlite3.Error:
            connection.close()
            if mode == modes[-1]:
                raise
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("each mode returns or raises")
