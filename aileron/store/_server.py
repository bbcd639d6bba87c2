"""Connections to a PostgreSQL server. Batches are written one at a time, each in few statements.

If a batch fails as a whole, or one of its jobs failed after it had written, the batch is done again with one savepoint
for each job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from select import POLLIN, poll
from typing import Any, TypeVar

import psycopg
from attrs import define
from psycopg import pq
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from aileron.model.errors import StoreUnavailable

from ._address import ServerAddress
from ._dialect import RowLookup
from ._engine import LOOKUP, AtEnd, EngineConnection, EnginePool, Job, Threads, Tuning
from ._postgresql import AgainError, PostgreSQLCursor, Row, make_rows

T = TypeVar("T")

SCHEMA = "aileron"
DAEMON_LOCK = 0x41494C53
"""The number of the lock that the writer's connection holds while it lives."""

TRANSACTION_LOCK = 0x41494C52
"""The number of the lock that each batch holds until its commit."""

# guard of several daemons: batches of all daemons are written one at a time
#    -> functional.test_store_several.OrderTests.test_one_at_a_time,
#    instead _BEGIN = "BEGIN; SELECT 1; SELECT pg_current_xact_id()::text"
_BEGIN = f"BEGIN; SELECT pg_advisory_xact_lock({TRANSACTION_LOCK}); SELECT pg_current_xact_id()::text"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TYPES = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'aileron'"
_ENDING = ("FATAL", "PANIC")
"""The severities of an error with which the server ends a session."""

BATCH_SECONDS = 1.0
"""The time after which a batch is committed, and its other jobs are the next batch."""

_NO_PASSWORD = "no password supplied"
_NAME_ONE = "Put it in a file: store.password_file in config.yaml, or --password-file of the command."
_PAUSE_SECONDS = 0.5
_MOST_PIECES = 16

_log = Logger()

_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 60
_CONNECTION = {
    "connect_timeout": _CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "aileron",
    "client_encoding": "UTF8",
    "gssencmode": "disable",
    "target_session_attrs": "primary",
}
_SESSION = "SELECT pid, CAST(backend_start AS text) FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END_SESSION = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND CAST(backend_start AS text) = %s
"""


_IS_THERE = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND CAST(backend_start AS text) = %s"


class PostgreSQLConnection(EngineConnection):
    """A connection to a server. One that the server has closed meanwhile is replaced before it is used."""

    def __init__(self, pool: PostgreSQLPool) -> None:
        kept = pool.kept()
        if kept is not None and not _is_alive(kept):
            pool.forget()
        super().__init__(pool)  # type: ignore[no-untyped-call]

    def write(self, take: Callable[[], Sequence[Job]], at_end: AtEnd | None) -> list[Any]:
        cursor, transaction = self._begin(together=True)
        jobs = take()
        try:
            return self._write_together(cursor, transaction, jobs, at_end)
        except AgainError:
            self.own().rollback()
        return self._write_singly(jobs, at_end)

    def read(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        inner = self.own().cursor()
        inner.execute(_READ, prepare=False)
        return function(PostgreSQLCursor(inner, {}), *args, **kwargs)

    def rollback(self) -> None:
        """Undo the transaction. If the connection is lost, forget it: the next call makes another."""
        try:
            self.own().rollback()
        except psycopg.Error:
            self.pool().forget()

    def _write_together(
        self, cursor: PostgreSQLCursor, transaction: str, jobs: Sequence[Job], at_end: AtEnd | None
    ) -> list[Any]:
        _find_rows(cursor, jobs)
        outcomes = _run_in_time(jobs, partial(self._attempt_together, cursor))
        durable = None if at_end is None else at_end(cursor)
        with self._again():
            cursor.flush()
        self._commit(transaction)
        if durable is not None:
            durable()
        return outcomes

    def _attempt_together(self, cursor: PostgreSQLCursor, job: Job) -> Any:
        cursor.begin_job()
        try:
            with self._again():
                return job.function(cursor, *job.arguments)
        except (AgainError, psycopg.Error):
            raise
        except Exception as error:  # noqa: BLE001 - the exception is passed to the caller, and the other jobs continue
            if not cursor.drop_job():
                raise AgainError from None
            return error

    def _again(self) -> _Again:
        return _Again(self.own())

    def _write_singly(self, jobs: Sequence[Job], at_end: AtEnd | None) -> list[Any]:
        cursor, transaction = self._begin(together=False)
        outcomes = _run_in_time(jobs, partial(self._attempt_singly, cursor))
        durable = None if at_end is None else at_end(cursor)
        self._commit(transaction)
        if durable is not None:
            durable()
        return outcomes

    def _attempt_singly(self, cursor: PostgreSQLCursor, job: Job) -> Any:
        cursor.execute("SAVEPOINT job")
        try:
            value = job.function(cursor, *job.arguments)
        except Exception as error:
            if not _is_in_transaction(self.own()):
                raise
            cursor.execute("ROLLBACK TO job")
            cursor.execute("RELEASE job")
            return self.pool().refusal(error) if self.pool().is_error(error) else error
        cursor.execute("RELEASE job")
        return value

    def _begin(self, *, together: bool) -> tuple[PostgreSQLCursor, str]:
        """Begin a transaction in one round trip. Return its cursor and its number."""
        inner = self.own().cursor()
        inner.execute(_BEGIN, prepare=False)
        inner.nextset()
        inner.nextset()
        (transaction,) = inner.fetchone() or ("",)
        return PostgreSQLCursor(inner, self._find_types(), together), transaction

    def _find_types(self) -> Mapping[tuple[str, str], str]:
        types: dict[tuple[str, str], str] = self.pool().types
        if not types:
            types.update({(table, column): type_ for table, column, type_ in self.own().execute(_TYPES)})
        return types

    def _commit(self, transaction: str) -> None:
        """Commit. If the answer is lost, ask on another connection whether it succeeded.

        :raises StoreUnavailable: if nothing was stored, or nobody can tell.
        """
        try:
            ended = self.own().execute("COMMIT", prepare=False).statusmessage
        except psycopg.Error as error:
            if error.diag.severity_nonlocalized not in _ENDING and not self.own().broken:
                raise
            if not self._was_committed(transaction):
                raise self.pool().refusal(error) from None
            _log.warn("the answer to a commit was lost: it had succeeded")
            return
        if ended != "COMMIT":
            raise StoreUnavailable("The database undid the transaction.")

    def _was_committed(self, transaction: str) -> bool:
        """Return whether a transaction was committed whose connection was lost.

        The new connection has the daemon's lock only once the old one has ended, so the answer is final.

        :raises StoreUnavailable: if the server cannot be asked in time.
        """
        deadline = time.monotonic() + self.pool().tuning.lost_seconds
        while True:
            try:
                self.replace()
                asked = self.own().execute("SELECT pg_xact_status(CAST(%s AS xid8))", [transaction])
                return bool(asked.fetchall() == [("committed",)])
            except (psycopg.Error, StoreUnavailable):
                if time.monotonic() > deadline:
                    raise StoreUnavailable("The database was lost. It is not known whether it stored this.") from None
            time.sleep(_PAUSE_SECONDS)


def _run_in_time(jobs: Sequence[Job], attempt: Callable[[Job], Any]) -> list[Any]:
    """Attempt jobs in order and return their outcomes. Attempt no further job once the time of a batch is over.

    Jobs that only compute send no statement for a while. After C{Tuning.stalled_seconds} of that, the server would end
    the transaction, and other daemons would wait for it in vain.
    """
    over, outcomes = time.monotonic() + BATCH_SECONDS, list[Any]()
    for job in jobs:
        outcomes.append(attempt(job))
        # guard of the store: a batch does not take long -> functional.test_store_server.TogetherTests.test_long
        if time.monotonic() >= over:
            break
    return outcomes


def _find_rows(cursor: PostgreSQLCursor, jobs: Sequence[Job]) -> None:
    """Find the rows that the jobs look up, with one statement for each kind of lookup."""
    values: dict[RowLookup, list[object]] = {}
    for job in jobs:
        announced = getattr(job.function, LOOKUP, None)
        if announced is not None:
            lookup, value = announced
            values.setdefault(lookup, []).append(value(*job.arguments))
    for lookup, wanted in values.items():
        cursor.find_all(lookup, wanted)


@define(eq=False)
class _Again:
    """A context in which errors of the database become L{AgainError}, unless the connection is lost."""

    _connection: psycopg.Connection[Row]

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, psycopg.Error) and _is_in_transaction(self._connection):
            raise AgainError from None


def _is_in_transaction(connection: psycopg.Connection[Any]) -> bool:
    status = connection.pgconn.transaction_status
    return status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has not closed an unused connection, as far as this machine was told."""
    if connection.closed:
        return False
    waiting = poll()
    waiting.register(connection.fileno(), POLLIN)
    try:
        for _ in range(_MOST_PIECES):
            if not waiting.poll(0):
                return True
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return False


class DatabaseTaken(StoreUnavailable):
    """Raised if another daemon uses the database."""


class PostgreSQLPool(EnginePool):
    """A pool of connections to one database.

    :ivar tuning: the settings.
    :ivar types: the type of each column, by table and column. Empty before the first write.
    """

    connectionFactory = PostgreSQLConnection

    def __init__(self, address: ServerAddress, reactor: Any, threads: Threads, tuning: Tuning, *, writes: bool) -> None:
        self.tuning = tuning
        self.types: dict[tuple[str, str], str] = {}
        self._address, self._writes = address, writes
        self._session: Row | None = None
        super().__init__(
            threads(1, 1 if writes else tuning.readers), "psycopg", cp_openfun=self._prepare, cp_reactor=reactor
        )

    def connect(self) -> Any:
        """Return the connection of this thread, or make it.

        :raises StoreUnavailable: if the password cannot be read, or another daemon uses the database.
        """
        self.connkw = {**connection_options(self._address, self._settings()), "autocommit": True}
        try:
            return super().connect()  # type: ignore[no-untyped-call]
        finally:
            self.connkw = {}

    def is_error(self, error: BaseException | None) -> bool:
        return isinstance(error, psycopg.Error)

    def refusal(self, cause: BaseException | None) -> StoreUnavailable:
        if isinstance(cause, StoreUnavailable):
            return cause
        if isinstance(cause, psycopg.errors.DiskFull):
            return StoreUnavailable("The disk of the database is full.")
        return StoreUnavailable(f"The database is not available ({type(cause).__name__}).")

    def _settings(self) -> Mapping[str, object]:
        """Return the settings of a session. A daemon that stops within a transaction loses it, and its lock.

        Readers hold no lock, and may compute longer with what they have read.
        """
        tuning = self.tuning
        stalled_seconds = tuning.stalled_seconds if self._writes else max(tuning.stalled_seconds, _STATEMENT_SECONDS)
        return {
            "search_path": SCHEMA,
            "default_transaction_read_only": "off" if self._writes else "on",
            "synchronous_commit": "on" if tuning.durable else "off",
            "idle_in_transaction_session_timeout": _milliseconds(stalled_seconds),
            "lock_timeout": _milliseconds(tuning.busy_seconds),
            "statement_timeout": _milliseconds(_STATEMENT_SECONDS),
            "tcp_keepalives_idle": 10,
            "tcp_keepalives_interval": 5,
            "tcp_keepalives_count": 3,
        }

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.row_factory = make_rows
            connection.prepare_threshold = 1
            if self._writes:
                self._lock_database(connection)
        except BaseException:
            connection.close()
            raise

    def _lock_database(self, connection: psycopg.Connection[Row]) -> None:
        """Take the exclusive lock, or the shared one of several daemons. End an earlier session of this daemon.

        :raises DatabaseTaken: if another daemon holds the lock.
        :raises StoreUnavailable: if the earlier session has not ended yet.
        """
        kind = "_shared" if self.tuning.several else ""
        free = connection.execute(f"SELECT pg_try_advisory_lock{kind}(%s)".encode(), [DAEMON_LOCK]).fetchone()
        # guard of several daemons: a daemon's own earlier session is ended before another begins
        #    -> functional.test_store_several.OrderTests.test_own_session
        if self._session is not None and (kind or not (free and free[0])):
            connection.execute(_END_SESSION, self._session)
        if not (free and free[0]):
            try:
                connection.execute(f"SELECT pg_advisory_lock{kind}(%s)".encode(), [DAEMON_LOCK])
            except psycopg.errors.LockNotAvailable:
                raise DatabaseTaken(f"Another daemon uses the database at {self._address.url}{_alone(kind)}.") from None
        if self._session is not None and kind and connection.execute(_IS_THERE, self._session).fetchone():
            raise StoreUnavailable("The daemon's earlier connection to the database has not ended yet.")
        self._session = connection.execute(_SESSION).fetchone()


def connection_options(
    address: ServerAddress, settings: Mapping[str, object], seconds: int = _CONNECT_SECONDS
) -> dict[str, Any]:
    """Return the arguments of a connection to a database.

    :param settings: the settings of its session.
    :param seconds: how long the server may take to accept it.
    :raises StoreUnavailable: if the password cannot be read.
    """
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return {**_CONNECTION, **address.with_password(), "connect_timeout": seconds, "options": options}


def _alone(kind: str) -> str:
    return ", and uses it alone: store.daemons must be set to several for each" if kind else ""


def _milliseconds(seconds: float) -> int:
    """Return whole milliseconds, at least one, because 0 means no limit."""
    return max(1, int(seconds * 1000))


def run(pool: PostgreSQLPool, function: Any, *args: Any) -> Deferred[Any]:
    """Call C{function(connection, …)} with psycopg's connection, in the pool's thread.

    :raises DatabaseRefused, StoreUnavailable: (errback) with libpq's words if no connection can be made.
    """

    def call(connection: EngineConnection) -> Any:
        return function(connection.own(), *args)

    def told(failure: Any) -> Any:
        failure.trap(psycopg.Error)
        raise explain(failure.value, pool)

    return pool.call(call).addErrback(told)


def explain(error: BaseException, pool: PostgreSQLPool) -> StoreUnavailable:
    """Return the error for somebody who starts the daemon: with the server's words if it refused the connection."""
    words = str(error).strip().partition("\n")[0] if isinstance(error, psycopg.OperationalError) else ""
    if _NO_PASSWORD in words:
        words = f"{words}. {_NAME_ONE}"
    return StoreUnavailable(f"The database cannot be used: {words}") if words else pool.refusal(error)
