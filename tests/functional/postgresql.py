"""A PostgreSQL server for tests: Debian's programs, in a temporary directory, with a socket and no port."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from aileron.store import ServerAddress, read_address
from aileron.store._server import TRANSACTION_LOCK
from aileron.testing import unopened_store
from tests.functional.install import database

_START_SECONDS = 60.0
_USERS = ("postgres", "nobody")
# Ends the server, and removes its directory, once the tests' end of the pipe is closed, however they end.
_WATCH = """
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=50 >"$2/log" 2>&1 &
read -r _; "$1/pg_ctl" -D "$2/data" -m immediate -w stop >/dev/null; cd /; rm -rf "$2"
"""
_numbers = count(1)


def as_ordinary_user() -> dict[str, Any]:
    """What makes a subprocess run as an ordinary user, which the server needs; empty if we are one."""
    if os.geteuid() != 0:
        return {}
    import pwd

    names = {each.pw_name for each in pwd.getpwall()}
    user = pwd.getpwnam(next(name for name in _USERS if name in names))
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@define(eq=False)
class Server:
    """One server, which ends with the process that started it."""

    directory: Path
    programs: Path
    process: subprocess.Popen[bytes] | None = None
    template: str = ""
    free: list[str] = field(factory=list)

    def url(self, database: str) -> str:
        return f"postgresql://aileron@/{database}?host={self.directory}"

    def connect(self, database: str = "postgres") -> Any:
        """A connection of the tests' own, beside the store's."""
        import psycopg

        return psycopg.connect(
            host=str(self.directory), user="aileron", dbname=database, autocommit=True, options="-c search_path=aileron"
        )

    def start(self) -> None:
        as_user = as_ordinary_user()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", str(self.programs), str(self.directory)],
            stdin=subprocess.PIPE,
            cwd=self.directory,
            **as_user,
        )
        self.wait()

    def wait(self) -> None:
        """Wait until the server answers."""
        import psycopg

        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def control(self, *command: str, settings: str = "-c listen_addresses=") -> None:
        """Run C{pg_ctl}: stop, start, restart."""
        options = f"-k {self.directory} -c fsync=off -c max_connections=50 {settings}"
        subprocess.run(
            [self.programs / "pg_ctl", "-D", self.directory / "data", "-w", "-o", options, *command],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.directory,
            **as_ordinary_user(),
        )

    def make_database(self, options: str = "") -> str:
        """Make an empty database, or with C{options} a copy of another."""
        name = f"t{next(_numbers)}"
        with self.connect() as admin:
            admin.execute(f"CREATE DATABASE {name} {options}")
        return name

    def drop(self, name: str) -> None:
        with self.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def lend(self) -> str:
        """A database with all tables, which are empty."""
        return self.free.pop() if self.free else self.make_database(f"TEMPLATE {self.template}")

    def take_back(self, name: str) -> None:
        """Empty all tables but those of the version."""
        self.end_sessions(name)
        with self.connect(name) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'aileron'").fetchall()
            tables = ", ".join(table for (table,) in found if not table.startswith("schema_"))
            connection.execute("SET session_replication_role = replica")  # without the triggers that refuse it
            connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        self.free.append(name)

    def end_sessions(self, name: str) -> None:
        """End all sessions in a database, and wait until they have ended."""
        with self.connect() as admin:
            admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])

    def prepare_template(self, case: SynchronousTestCase) -> None:
        """Make the database of which those of tests are copies, because creating the tables takes long."""
        if not self.template:
            name = self.make_database()
            store = unopened_store(read_address(self.url(name)))
            case.successResultOf(Deferred.fromCoroutine(store.open()))
            case.successResultOf(Deferred.fromCoroutine(store.close()))
            self.template = name


@cache
def start_server() -> Server:
    """The server of this process: see `make_server`."""
    return make_server()


def make_server() -> Server:
    """Start a server, which ends with this process.

    :raises SkipTest: if PostgreSQL or psycopg is not installed.
    """
    programs = database()
    if programs is None:
        raise SkipTest("PostgreSQL is not installed: apt-get install postgresql")
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise SkipTest("psycopg is not installed: pip install 'psycopg[binary]'") from None
    directory = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    as_user = as_ordinary_user()
    if as_user:
        os.chown(directory, as_user["user"], as_user["group"])
    subprocess.run(
        [programs / "initdb", "-D", directory / "data", *"-A trust -U aileron -E UTF8 -N --locale=C".split()],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=directory,
        **as_user,
    )
    server = Server(directory, programs)
    server.start()
    return server


class OnServer:
    """Makes a test case's stores use databases of a real server instead of files."""

    def setUp(self) -> None:
        self.server = start_server()
        self.server.prepare_template(self)  # type: ignore[arg-type]
        self._places: dict[Path, str] = {}
        super().setUp()  # type: ignore[misc]

    def place_of(self, path: Path) -> ServerAddress:
        """The database of a path: a new one at first."""
        path = path.absolute()
        if path in self._places:  # as after a crash of the first daemon
            self.server.end_sessions(self._places[path])
        else:
            self._places[path] = name = self.server.lend()
            self.addCleanup(self.server.take_back, name)  # type: ignore[attr-defined]
        return read_address(self.server.url(self._places[path]))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While this lasts nothing can be written."""
        with self.beside(self.path) as other:  # type: ignore[attr-defined]
            other.execute("SELECT pg_advisory_lock(%s)", [TRANSACTION_LOCK])
            yield
            other.execute("SELECT pg_advisory_unlock(%s)", [TRANSACTION_LOCK])

    @contextmanager
    def beside(self, path: Path) -> Iterator[Any]:
        """A connection of another process to the database of a path."""
        with self.server.connect(self._places[path.absolute()]) as connection:
            yield connection

    def query(self, statement: str) -> Sequence[Any]:
        """The rows of a statement that another connection runs on the database of the case's path."""
        with self.beside(self.path) as connection:  # type: ignore[attr-defined]
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []
