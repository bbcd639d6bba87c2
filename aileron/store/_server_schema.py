"""Creates the schema in a database on PostgreSQL, or migrates it to this version, each step in one transaction.

Daemons of two versions may share a database if the later one's steps say so: see L{works_from}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import psycopg
from twisted.logger import Logger

from ._engine import DatabaseRefused, ForeignDatabase, NewerDatabase
from ._server import DAEMON_LOCK, SCHEMA, TRANSACTION_LOCK

_SUFFIX = ".sql"
_OLDEST_SERVER = 14
_WORKS_FROM = re.compile(r"-- works from: ([1-9][0-9]{0,3})\n")
_MAKE_STEPS = "CREATE TABLE IF NOT EXISTS schema_steps (number bigint PRIMARY KEY, works_from bigint NOT NULL)"

_log = Logger()


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


def works_from(number: int, step: str) -> int:
    """Return the least step that a daemon must know to work on tables with this one.

    The first line of a step's file may name it, as C{-- works from: 18}. By default, it is the step itself.
    """
    found = _WORKS_FROM.match(step)
    return number if found is None else int(found[1])


def migrate_server(connection: psycopg.Connection[Any]) -> None:
    """Create the schema, or migrate it. Idempotent.

    If all daemons that can work on the tables now can also work on them afterwards, other daemons may run meanwhile. If
    a newer version wrote the database, and its steps say that this version can work on it, do nothing.

    :raises NewerDatabase: if a newer version wrote the database, and this one cannot work on it. It is unchanged.
    :raises ForeignDatabase: if the schema is not one of Aileron. It is unchanged.
    :raises DatabaseRefused: if the server or the database cannot be used.
    """
    _check_server(connection)
    known = steps()
    found = find_version(connection)
    recorded = _find_recorded(connection) if found else {}
    if found > max(known):
        _check_newer(found, max(known), recorded)
    missing = [number for number in known if number > found]
    oldest = find_oldest(found, recorded)
    # guard of several daemons: tables change beside other daemons only if each of them can work on them afterwards
    #    -> functional.test_store_upgrade.UpgradeTests.test_not_beside, instead alone = not found
    alone = not found or any(works_from(number, known[number]) > oldest for number in missing)
    if missing and alone:
        _require_alone(connection)
    for number in missing:
        _take_step(connection, number, known[number])
    if missing and alone:
        connection.execute("SELECT pg_advisory_unlock(%s)", [DAEMON_LOCK])


def _check_newer(found: int, newest: int, recorded: Mapping[int, int]) -> None:
    """Check that a daemon that knows the steps up to C{newest} can work on tables with those up to C{found}.

    :param recorded: what L{works_from} is for steps of the database, as far as it says.
    :raises NewerDatabase: if it cannot.
    """
    # guard of several daemons: an older daemon works only on tables that were made for it as well
    #    -> functional.test_store_upgrade.UpgradeTests.test_refused, instead pass
    if find_oldest(found, recorded) > newest:
        raise NewerDatabase(
            f"The database was written by a newer Aileron (schema {found}; this one knows {newest}), and this version"
            " cannot work on it. Install the newer one.",
            {"version": found, "known": newest},
        )
    _log.info(
        "a newer Aileron upgraded the database to schema {found}; this one, which knows {known}, works on it",
        found=found,
        known=newest,
    )


def find_oldest(found: int, recorded: Mapping[int, int]) -> int:
    """Return the last step that the oldest daemon knows that can work on tables with the steps up to C{found}."""
    oldest = found
    while oldest > 1 and all(recorded.get(step, step) < oldest for step in range(oldest, found + 1)):
        oldest -= 1
    return oldest


def _find_recorded(connection: psycopg.Connection[Any]) -> Mapping[int, int]:
    """Return L{works_from} of the steps that the database has, as the daemons that took them recorded it."""
    there = connection.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.schema_steps"]).fetchone()
    if there is None or there[0] is None:
        return {}
    return {int(row[0]): int(row[1]) for row in connection.execute("SELECT number, works_from FROM schema_steps")}


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
    #    -> functional.test_store_upgrade.UpgradeTests.test_not_beside, instead pass
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", [DAEMON_LOCK])
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        raise DatabaseRefused(
            "The tables must be made or upgraded: stop all other daemons of this database first."
        ) from None


def _take_step(connection: psycopg.Connection[Any], number: int, step: str) -> None:
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [TRANSACTION_LOCK])  # between two batches of others
        if find_version(connection) >= number:  # another daemon that starts has just taken it
            return
        if not _count(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = %s"):
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(step.encode(), prepare=False)
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (%s)", [number])
        connection.execute(_MAKE_STEPS)
        connection.execute(
            "INSERT INTO schema_steps (number, works_from) VALUES (%s, %s)"
            " ON CONFLICT (number) DO UPDATE SET works_from = excluded.works_from",
            [number, works_from(number, step)],
        )


def _count(connection: psycopg.Connection[Any], statement: str) -> int:
    row = connection.execute(statement.encode(), [SCHEMA]).fetchone()
    return int(row[0]) if row else 0
