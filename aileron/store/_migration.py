"""Migrates a database file to the schema of this version, atomically and with a backup of an older file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from attrs import frozen

from aileron.base.disk import is_disk_full
from aileron.model.errors import StoreUnavailable

from ._engine import DISK_FULL, ForeignDatabase, NewerDatabase
from ._sqlite import refusal

APPLICATION_ID = 0x41494C52  # "AILR", in the header of each of our files
_SUFFIX = ".sql"


@frozen
class Schema:
    """The numbered migration steps, from 1 without a gap.

    :ivar steps: the SQL of each step. The first creates version 1 in an empty file.
    """

    steps: tuple[str, ...]

    @property
    def version(self) -> int:
        """The version after the last step."""
        return len(self.steps)


def shipped() -> Schema:
    """Return the schema files of this package.

    :raises ValueError: if the numbers of the files have a gap.
    """
    found = sorted(
        entry.name for entry in files(__package__).joinpath("schema").iterdir() if entry.name.endswith(_SUFFIX)
    )
    if [int(name.partition("_")[0]) for name in found] != list(range(1, len(found) + 1)):
        raise ValueError("schema files are not numbered from 1 without a gap")
    return Schema(tuple(files(__package__).joinpath("schema", name).read_text("utf-8") for name in found))


def migrate(path: Path, schema: Schema, busy_seconds: float = 5.0) -> None:
    """Create the file at C{path}, with mode 0600, or migrate it to C{schema}.

    Blocks. Idempotent. An older file is copied to C{<path>.backup-<version>} first.

    :raises NewerDatabase: if a newer version wrote the file, which is unchanged.
    :raises ForeignDatabase: if the file is not a database of Aileron. It is unchanged.
    :raises StoreUnavailable: if the file cannot be read or written.
    """
    try:
        if path.exists():
            _upgrade(path, schema, busy_seconds)
        else:
            _create(path, schema)
    except (sqlite3.Error, OSError) as error:
        raise _refusal(error, path) from None


def _refusal(error: Exception, path: Path) -> StoreUnavailable:
    if is_disk_full(path.parent):  # SQLite has several errors for a full disk
        return StoreUnavailable(DISK_FULL)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return ForeignDatabase("The file is no database.")
    return refusal(error)


def _create(path: Path, schema: Schema) -> None:
    fresh = _empty(path.with_name(f"{path.name}.new"))
    with closing(_connect(fresh, 0)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        _step_through(connection, schema, 0)
    _put_in_place(fresh, path)


def _upgrade(path: Path, schema: Schema, busy_seconds: float) -> None:
    with closing(_connect(path, busy_seconds)) as connection:
        version = _version(connection, schema)
        path.chmod(0o600)
        if version < schema.version:
            _back_up(connection, path, version)
            _step_through(connection, schema, version)


def _version(connection: sqlite3.Connection, schema: Schema) -> int:
    (ours,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if ours != APPLICATION_ID:
        raise ForeignDatabase("The file is no database of Aileron.")
    if version > schema.version:
        raise NewerDatabase(
            f"The database was written by a newer Aileron (schema {version}; this one knows {schema.version}).",
            {"version": version, "known": schema.version},
        )
    return int(version)


def _step_through(connection: sqlite3.Connection, schema: Schema, version: int) -> None:
    """Run the steps after C{version}, each in one transaction with the update of the stored version.

    Closing the connection rolls back a failed step.
    """
    for number, step in enumerate(schema.steps[version:], version + 1):
        connection.executescript(f"BEGIN IMMEDIATE;\n{step}\nPRAGMA user_version = {number};\nCOMMIT;")


def _back_up(connection: sqlite3.Connection, path: Path, version: int) -> None:
    copy = _empty(path.with_name(f"{path.name}.backup-{version}.new"))
    with closing(_connect(copy, 0)) as target:
        connection.backup(target)
    _put_in_place(copy, path.with_name(f"{path.name}.backup-{version}"))


def _empty(path: Path) -> Path:
    """Create an empty private file, replacing the remains of an interrupted attempt, and return its path."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    return path


def _put_in_place(made: Path, path: Path) -> None:
    """Rename the file and make the new name durable."""
    made.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=busy_seconds)
    connection.execute("PRAGMA synchronous = FULL")
    return connection
