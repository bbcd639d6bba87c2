"""The daemons that share one database: their leases, and the runs that a daemon leaves when its lease ends.

Each run that has not ended has a holder: the daemon that changed it last. A daemon renews its lease. When the lease has
ended, another daemon deletes it, takes the runs that had not begun, and lists those that had. All times are the
database's, so no daemon's own clock decides when a lease ends.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.model.daemons import ProcessFacts, ServingDaemon
from aileron.model.errors import AuthorityChanged, StoreUnavailable
from aileron.model.runs import Run, RunState

from ._bulletin import Bulletin
from ._connections import Readers
from ._dialect import Cursor, RowUpdate
from ._runs_table import RUNS
from ._writer import Writer

T = TypeVar("T")

MOST_SKEW_SECONDS = 10.0
"""The largest difference between a daemon's clock and the database's with which the daemon begins an effect."""

_MOST_TAKEN = 200
_NOW = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_JOIN = f"""
    INSERT INTO daemons (id, started_at, seen_at, until, host, pid, version, schema)
    VALUES (?, {_NOW}, {_NOW}, {_NOW} + ?, ?, ?, ?, ?)
"""
_RENEW = f"UPDATE daemons SET seen_at = {_NOW}, until = {_NOW} + ? WHERE id = ?"
_LEAVE = "DELETE FROM daemons WHERE id = ?"
_UNFINISHED = (
    "state IN ('received', 'pending_approval', 'approved', 'awaiting_vault', 'awaiting_credential', 'executing')"
)
_LIST = f"""
    SELECT id, host, pid, version, schema, started_at, until - {_NOW},
        (SELECT count(*) FROM runs WHERE lease_holder = daemons.id AND {_UNFINISHED})
    FROM daemons ORDER BY started_at, id
"""
_COUNT = f"SELECT count(*) FROM runs WHERE {_UNFINISHED}"
_END_OTHERS = f"DELETE FROM daemons WHERE until < {_NOW} AND id <> ?"
_HOLDS = f"SELECT until > {_NOW}, {_NOW} FROM daemons WHERE id = ?"
_DECIDED = """
    SELECT authority, (SELECT value FROM watermarks WHERE name = ?) AS paused FROM vaults WHERE id = ? FOR SHARE
"""
_LEFT = f"""
    WHERE {_UNFINISHED}
    AND (lease_holder IS NULL OR lease_holder NOT IN (SELECT id FROM daemons))
    ORDER BY ordinal LIMIT ? FOR UPDATE SKIP LOCKED
"""
_HAND_OVER = """
    UPDATE runs SET lease_holder = NULL WHERE lease_holder = ? AND state IN
    ('received', 'pending_approval', 'approved', 'awaiting_vault', 'awaiting_credential') AND NOT (id = ANY(?))
"""
_HOLD = RowUpdate("runs", ("lease_holder",), ("id",))


class LeaseEnded(StoreUnavailable):
    """Raised if this daemon's lease has ended, so that another daemon may have taken its runs."""


@frozen
class Decided:
    """The operator's decisions, as far as this daemon knows them. An effect begins only if the database has the same.

    :ivar vault: the vault's id.
    :ivar authority: the digest of what is in the vault.
    :ivar row: the name of the watermark with the pauses.
    :ivar pauses: the text of this row, or None if there is none.
    """

    vault: str
    authority: str
    row: str
    pauses: str | None


@define(eq=False)
class Daemons:
    """This daemon among those that share a database.

    :param process: this process, with an ID that is unique among the daemons.
    :param schema: the version of the tables that this daemon knows.
    :param seconds: how long a lease lasts without being renewed.
    :param bulletin: tells the others that this daemon leaves runs to them.
    :ivar id: the holder of this daemon's runs. It differs after a lease of this daemon has ended.
    :ivar known: returns what the operator decided, as this daemon knows it, or None to compare nothing. It is called in
        the writer's thread.
    :ivar catch_up: reads what the operator decided, so that C{known} returns that. Called after L{AuthorityChanged}.
    """

    _process: ProcessFacts
    _schema: int
    seconds: float
    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _bulletin: Bulletin
    _hands_over: bool = field(default=False, init=False)
    _terms: int = field(default=0, init=False)
    id: str = field(default="", init=False)
    _held_until: float = field(default=0.0, init=False)  # by the clock of L{count_seconds}
    known: Callable[[], Decided | None] = field(default=lambda: None, init=False)
    catch_up: Callable[[], Awaitable[None]] | None = field(default=None, init=False)

    async def join(self) -> None:
        """Begin a lease. Call at the start, and after L{renew} returned False.

        :raises StoreUnavailable: if it cannot be stored.
        """
        self._terms += 1
        id_, asked = f"{self._process.id}.{self._terms}", count_seconds()
        await self._writer.write(_join, id_, self.seconds, self._process, self._schema)
        self.id, self._held_until = id_, asked + self.seconds

    async def renew(self) -> bool:
        """Renew the lease. Return False if it has ended already, so that other daemons may have taken this one's runs.

        :raises StoreUnavailable: if it cannot be stored.
        """
        asked = count_seconds()
        held = await self._writer.write(_renew, self.id, self.seconds)
        self._held_until = asked + self.seconds if held else 0.0
        return held

    def holds(self) -> bool:
        """Return whether the lease cannot have ended yet, without asking the database.

        It may have ended if this process or its machine was suspended for longer than a lease.
        """
        return count_seconds() < self._held_until

    async def hand_over(self, kept: Collection[str]) -> None:
        """Give the runs that have not begun to the other daemons. From now on, hold only runs that are executing.

        The lease goes on, for the runs that are executing.

        :param kept: the ids of runs that this daemon still works on.
        :raises StoreUnavailable: if it cannot be stored.
        """
        self._hands_over = True
        await self._writer.write(_hand_over, self.id, list(kept), self._bulletin)

    async def leave(self) -> None:
        """End the lease, and tell the others, so that they take the runs at once. Idempotent.

        :raises StoreUnavailable: if it cannot be stored.
        """
        await self._writer.write(_leave, self.id, self._bulletin)

    async def list(self) -> Sequence[ServingDaemon]:
        """Return all daemons, also those whose lease has just ended, oldest first.

        :raises StoreUnavailable: if they cannot be read.
        """
        return await self._readers.read(_list, self.id)

    async def take_left(self) -> Sequence[Run]:
        """Delete ended leases of others, and return up to 200 unfinished runs that no daemon holds, oldest first.

        This daemon then holds the returned runs that are not executing. The caller must store executing ones as
        C{unknown}. Until then, each call returns them again.

        :raises StoreUnavailable: if it cannot be stored.
        """
        return await self._writer.write(_take_left, self.id)

    async def informed(self, write: Awaitable[T]) -> T:
        """Return the result of a write. If it raises L{AuthorityChanged}, call L{catch_up} before raising it again.

        :raises AuthorityChanged: if the operator decided something on another daemon. Plan the write again and retry.
        """
        try:
            return await write
        except AuthorityChanged:
            if self.catch_up is not None:
                await self.catch_up()
            raise

    def hold(self, cursor: Cursor, run: Run) -> None:
        """Make this daemon the holder of a run, just inserted or changed, unless the run has ended."""
        if not run.state.settled and run.state is not RunState.UNKNOWN:
            others = self._hands_over and run.state is not RunState.EXECUTING
            cursor.update(_HOLD, (None if others else self.id, run.id))

    def admit(self, cursor: Cursor) -> None:
        """Check in a transaction that begins an effect that this daemon may begin it.

        :raises LeaseEnded: if the lease has ended.
        :raises StoreUnavailable: if this daemon's clock differs from the database's.
        :raises AuthorityChanged: if the operator decided something on another daemon that is not known here yet.
        """
        found = cursor.read_once(("daemons",), _HOLDS, (self.id,))  # others end leases under the lock of the batch
        # guard of several daemons: a daemon whose lease has ended begins nothing
        #    -> functional.test_store_several.LeaseTests.test_ended
        if found is None or not found[0]:
            raise LeaseEnded("This daemon was silent for too long, so its runs were taken over. It starts again.")
        # guard of several daemons: a daemon whose clock is wrong begins nothing
        #    -> functional.test_store_several.LeaseTests.test_clock
        if abs(found[1] - self._clock.seconds()) > MOST_SKEW_SECONDS:
            raise StoreUnavailable("The clock of this machine differs from that of the database. Nothing begins.")
        known = self.known()
        # guard of several daemons: what the operator decided elsewhere counts
        #    -> functional.test_store_several.DecidedTests.test_changed
        if known is not None and _find_decided(cursor, known) != (known.authority, known.pauses):
            raise AuthorityChanged("The operator has just changed something on another daemon. Try again.")


@frozen
class LoneDaemon:
    """This daemon, which uses the database alone."""

    _process: ProcessFacts
    _schema: int
    _started_at: datetime
    _readers: Readers

    async def list(self) -> Sequence[ServingDaemon]:
        """Return this daemon, which holds all runs that have not ended.

        :raises StoreUnavailable: if they cannot be counted.
        """
        runs = await self._readers.read(_count_unfinished)
        return (ServingDaemon(self._process.id, self._process, self._schema, self._started_at, None, runs, True),)


def count_seconds() -> float:
    """Return the seconds of a monotonic clock that, if the system has one, also counts while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _find_decided(cursor: Cursor, known: Decided) -> tuple[str | None, str | None]:
    """Return the authority and the pauses as they are in the database. They do not change before the commit."""
    found = cursor.read_once(("watermarks", "vaults"), _DECIDED, (known.row, known.vault))
    return (None, None) if found is None else (found[0], found[1])


def _join(cursor: Cursor, id_: str, seconds: float, process: ProcessFacts, schema: int) -> None:
    cursor.execute(_JOIN, (id_, seconds, process.host, process.pid, process.version, schema))


def _renew(cursor: Cursor, id_: str, seconds: float) -> bool:
    return cursor.execute(_RENEW, (seconds, id_)).rowcount == 1


def _hand_over(cursor: Cursor, id_: str, kept: Sequence[str], bulletin: Bulletin) -> None:
    cursor.execute(_HAND_OVER, (id_, kept))
    bulletin.tell_left(cursor)


def _leave(cursor: Cursor, id_: str, bulletin: Bulletin) -> None:
    if cursor.execute(_LEAVE, (id_,)).rowcount:
        bulletin.tell_left(cursor)


def _list(cursor: Cursor, own: str) -> tuple[ServingDaemon, ...]:
    return tuple(
        ServingDaemon(id_, ProcessFacts(id_, host, pid, version), schema, utc(started), left, runs, id_ == own)
        for id_, host, pid, version, schema, started, left, runs in cursor.execute(_LIST)
    )


def _count_unfinished(cursor: Cursor) -> int:
    [(count,)] = cursor.execute(_COUNT).fetchall()
    return int(count)


def _take_left(cursor: Cursor, own: str) -> tuple[Run, ...]:
    cursor.execute(_END_OTHERS, (own,))
    left = RUNS.select(cursor, _LEFT, _MOST_TAKEN)
    for run in left:
        # guard of several daemons: an effect of a daemon that is gone stays its own until it is unknown
        #    -> functional.test_store_several.LeaseTests.test_taken_over, instead if True
        if run.state is not RunState.EXECUTING:
            cursor.update(_HOLD, (own, run.id))
    return left
