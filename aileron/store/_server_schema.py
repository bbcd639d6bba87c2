"""Creates the schema in a database on PostgreSQL, or migrates it to this version, each step in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import psycopg

from ._engine import DatabaseRefused, ForeignDatabase, NewerDatabase
from ._server import DAEMON_LOCK, SCHEMA

_SUFFIX = ".sql"
_OLDEST_SERVER = 14


def steps() -> Mapping[int, str]:
    """Return the SQL of each step by the version after it. The first creates everything up to its version.

    :raises ValueError: if the numbers of the files have a gap.
    """
    room = files(__package__).joinpath("schema", "postgresql")
    found = sorted(entry.name for entry in room.iterdir() if entry.name.endswith(_SUFFIX))
    numbers = [int(name.partition("_")[0]) for name in found]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ValueError("schema files are not numbered without a gap")
    return {number: room.joinpath(name).read_text("utf-8") for number, name in zip(numbers, found, strict=True)}


def migrate_server(connection: psycopg.Connection[Any]) -> None:
    """Create the schema, or migrate it. Idempotent.

    :raises NewerDatabase: if a newer version wrote the database, which is unchanged.
    :raises ForeignDatabase: if the schema is not one of Aileron. It is unchanged.
    :raises DatabaseRefused: if the server or the database cannot be used.
    """
    _check_server(connection)
    known = steps()
    found = find_version(connection)
    if found > max(known):
        raise NewerDatabase(
            f"The database was written by a newer Aileron (schema {found}; this one knows {max(known)}).",
            {"version": found, "known": max(known)},
        )
    missing = [number for number in known if number > found]
    if missing:
        _require_alone(connection)
    for number in missing:
        _take_step(connection, number, known[number])
    if missing:
        connection.execute("SELECT pg_advisory_unlock(%s)", [DAEMON_LOCK])


def is_empty(connection: psycopg.Connection[Any]) -> bool:
    """Return True if the database has no schema of Aileron, or an empty one."""
    return not _count(connection, "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)")


def _check_server(connection: psycopg.Connection[Any]) -> None:
    major = connection.info.server_version // 10_000
    if major < _OLDEST_SERVER:
        raise DatabaseRefused(f"The server is PostgreSQL {major}; {_OLDEST_SERVER} is the oldest that works.")
    [(encoding,)] = connection.execute("SHOW server_encoding").fetchall()
    if encoding != "UTF8":
        raise DatabaseRefused(f"The database has the encoding {encoding}; it must be UTF8.")


def find_version(connection: psycopg.Connection[Any]) -> int:
    """Return the version of the schema, 0 if there is none.

    :raises ForeignDatabase: if the schema is not one of Aileron.
    """
    if is_empty(connection):
        return 0
    ours = connection.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.schema_version"]).fetchone()
    if ours is None or ours[0] is None:
        raise ForeignDatabase(f"The schema {SCHEMA} of the database is not one of Aileron.")
    found = connection.execute("SELECT version FROM schema_version").fetchall()
    if len(found) != 1:
        raise ForeignDatabase(f"The schema {SCHEMA} of the database has no version.")
    return int(found[0][0])


def _require_alone(connection: psycopg.Connection[Any]) -> None:
    """Take the exclusive lock in addition to the shared one, so that no other daemon uses the database.

    :raises DatabaseRefused: if another daemon uses the database. One that has just been stopped may still end.
    """
    # guard of several daemons: tables change while no other daemon runs
    #    -> functional.test_store_several.LeaseTests.test_upgrade, instead pass
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", [DAEMON_LOCK])
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        raise DatabaseRefused(
            "The tables must be made or upgraded: stop all other daemons of this database first."
        ) from None


def _take_step(connection: psycopg.Connection[Any], number: int, step: str) -> None:
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        if not _count(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = %s"):
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(step.encode(), prepare=False)
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (%s)", [number])


def _count(connection: psycopg.Connection[Any], statement: str) -> int:
    row = connection.execute(statement.encode(), [SCHEMA]).fetchone()
    return int(row[0]) if row else 0
