"""The store: creation, opening, its parts, and closing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from aileron.base.json import utc
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IAudit, IBindingFlags, IInBandMemories, IRuns, ISessions, IWatermarks

from ._address import ServerAddress
from ._audit import Seals, SQLArchive, SQLAudit
from ._bulletin import CHANNEL, Bulletin
from ._call_counts import SQLCallCounts
from ._connections import Readers
from ._daemons import Daemons, LoneDaemon
from ._engine import EnginePool, Threads, Tuning
from ._in_band import SQLInBandMemories
from ._memories import SQLBindingFlags, SQLContents, SQLUsage, SQLWatermarks
from ._migration import Schema, migrate, shipped
from ._people import SQLPeople
from ._rate_limits import SQLRateLimits
from ._renewal_turns import SQLRenewalTurns
from ._runs import SQLRuns
from ._sessions import CACHED, SQLSessions
from ._snoozes import SQLSnoozes
from ._spending import SQLSpending
from ._sqlite import reading_pool, writing_pool
from ._tool_claims import SQLToolClaims
from ._wakes import SQLWakes
from ._writer import Writer

if TYPE_CHECKING:
    from ._listener import Listener
    from ._vaults import SharedVaults

INSTALL = "Install it: pipx inject aileron 'psycopg[binary]'"


@frozen
class _Pools:
    """The connection pools of a store.

    :ivar reactor: the reactor that delivers results.
    """

    reactor: Any
    writing: EnginePool
    reading: EnginePool

    def close(self) -> None:
        """Close the connections and end the threads."""
        self.reading.close()
        self.writing.close()


@frozen
class _Parts:
    """The objects that all parts of a store are made of."""

    writer: Writer
    readers: Readers
    seals: Seals


@frozen
class SharedStore:
    """The parts of a store that shares a database with other daemons.

    :ivar daemons: this daemon and the others, with their leases.
    :ivar vaults: the documents of vaults in the database.
    :ivar listener: receives the notices of the others.
    :ivar renewal_turns: lets one daemon at a time renew a credential.
    :ivar rate_limits: stores until when services asked for no further requests.
    :ivar call_counts: counts equal calls.
    :ivar wakes: stores which outcomes agents know.
    """

    daemons: Daemons
    vaults: SharedVaults
    listener: Listener
    renewal_turns: SQLRenewalTurns
    rate_limits: SQLRateLimits
    call_counts: SQLCallCounts
    wakes: SQLWakes

    def may_send(self) -> bool:
        """Return False if another daemon may have taken the runs that this one is executing."""
        return self.daemons.holds()

    async def close(self) -> None:
        """Close the connections of the vaults and of the listener. Idempotent."""
        self.vaults.close()
        looking = self.listener.stop()
        if looking is not None:
            await looking


@frozen
class Store:
    """A database, with one attribute for each kind of content. Call L{open} before use and L{close} after.

    Each write is one transaction, visible to the other parts after its commit.

    :ivar runs: runs with their approvals, steps and attempts.
    :ivar audit: single events of the audit record.
    :ivar archive: the complete audit record.
    :ivar sessions: the sessions of agents.
    :ivar contents: trusted texts.
    :ivar watermarks: named positions in other data.
    :ivar flags: flags of bindings.
    :ivar usage: the usage of language model calls.
    :ivar spending: what language model calls used by local day and model, for limits.
    :ivar in_band: replies hidden by in-band mode.
    :ivar snoozes: the times until which pending requests are put aside.
    :ivar tool_claims: the answers that requests of agents' own tools may claim.
    :ivar people: the accounts of people.
    :ivar daemons: lists the daemons that use the database.
    :ivar shared: the parts for sharing the database with other daemons, or None if this daemon is alone.
    """

    runs: IRuns
    audit: IAudit
    archive: SQLArchive
    sessions: ISessions
    contents: SQLContents
    watermarks: IWatermarks
    flags: IBindingFlags
    usage: SQLUsage
    spending: SQLSpending
    in_band: IInBandMemories
    snoozes: SQLSnoozes
    tool_claims: SQLToolClaims
    people: SQLPeople
    daemons: Daemons | LoneDaemon
    shared: SharedStore | None
    _pools: _Pools
    _migrate: Callable[[], Deferred[None]]
    _writer: Writer
    _readers: Readers
    _flushes: Sequence[Callable[[], Deferred[None]]]

    async def open(self) -> None:
        """Create the database, or migrate it to this version's schema.

        :raises NewerDatabase: if a newer version wrote the database, which is unchanged.
        :raises ForeignDatabase: if the database is not one of Aileron. It is unchanged.
        :raises StoreUnavailable: if the database cannot be used now, or another daemon uses it.
        """
        await self._migrate()

    @property
    def leads(self) -> bool:
        """True if this daemon does what only one of those on the database may do, such as notify the operator."""
        return self.shared is None or self.shared.listener.leads

    def may_send(self) -> bool:
        """Return False if another daemon may have taken the runs that this one is executing: send nothing then."""
        return self.shared is None or self.shared.may_send()

    def wake(self) -> None:
        """Notify callers that wait for a commit that another daemon has committed something."""
        self._writer.note_commit_elsewhere()

    async def close(self) -> None:
        """Write cached data, finish queued writes, and close the connections.

        Further calls are refused. Idempotent.
        """
        if self.shared is not None:
            await self.shared.close()
        for flush in self._flushes:
            await flush()
        await self._writer.close()
        await self._readers.close()
        self._pools.close()


def make_store(
    place: Path | ServerAddress,
    reactor: Any,
    clock: IReactorTime,
    seals: Seals,
    tuning: Tuning | None = None,
    threads: Threads = ThreadPool,
    schema: Schema | None = None,
) -> Store:
    """Return a store for a SQLite file or a database on a PostgreSQL server, not yet opened.

    :param reactor: the reactor for the thread pools: C{callWhenRunning}, C{callFromThread} and shutdown triggers.
    :param clock: the clock for the expiry of keys and for last uses of sessions.
    :param schema: a schema of the file other than the shipped one, only for tests.
    :raises StoreUnavailable: if the place is a server and the package psycopg is not installed.
    """
    tuning = tuning or Tuning()
    if isinstance(place, Path):
        pools, opening = _use_file(place, reactor, tuning, threads, schema or shipped())
    else:
        pools, opening = _use_server(place, reactor, tuning, threads)
    process, version = tuning.process, (schema or shipped()).version
    bulletin = Bulletin(process.id, CHANNEL) if tuning.several else None
    if bulletin is not None:
        seals = evolve(seals, bulletin=bulletin)
    writer, readers = Writer(pools.writing, tuning.max_batch, seals.before_commit), Readers(pools.reading)
    shared, daemons = None, None
    if bulletin is not None and isinstance(place, ServerAddress):
        daemons = Daemons(process, version, tuning.lease_seconds, writer, readers, clock, bulletin)
        shared = _share(place, pools, process.id, daemons, _Parts(writer, readers, seals))
    cached = 0 if shared is not None else CACHED
    sessions, usage = SQLSessions(writer, readers, clock, seals, cached), SQLUsage(writer, readers, clock)
    spending = SQLSpending(writer, readers, clock, process.id, seals)
    return Store(
        runs=SQLRuns(writer, readers, clock, seals, daemons),
        audit=SQLAudit(writer, readers, seals, clock),
        archive=SQLArchive(writer, readers),
        sessions=sessions,
        contents=SQLContents(writer, readers),
        watermarks=SQLWatermarks(writer, readers),
        flags=SQLBindingFlags(writer, readers, seals),
        usage=usage,
        spending=spending,
        in_band=SQLInBandMemories(writer, readers),
        snoozes=SQLSnoozes(writer, readers, clock, seals),
        tool_claims=SQLToolClaims(writer, readers, clock, seals),
        people=SQLPeople(writer, readers, seals),
        daemons=daemons or LoneDaemon(process, version, utc(clock.seconds()), readers),
        shared=shared,
        pools=pools,
        migrate=opening,
        writer=writer,
        readers=readers,
        flushes=(sessions.flush, usage.flush, spending.flush),
    )


def _share(address: ServerAddress, pools: _Pools, name: str, daemons: Daemons, parts: _Parts) -> SharedStore:
    from ._listener import Listener
    from ._vaults import SharedVaults

    listener = Listener(address, name, pools.reactor, pools.reading.threadpool)
    vaults = SharedVaults(address, name, time.monotonic)
    writer = parts.writer
    return SharedStore(
        daemons,
        vaults,
        listener,
        SQLRenewalTurns(writer, name),
        SQLRateLimits(writer, parts.readers),
        SQLCallCounts(writer, parts.seals),
        SQLWakes(writer, parts.seals),
    )


def _use_file(
    path: Path, reactor: Any, tuning: Tuning, threads: Threads, schema: Schema
) -> tuple[_Pools, Callable[[], Deferred[None]]]:
    """Return the pools of a file, and the function that creates or migrates it."""
    writing, reading = writing_pool(path, reactor, threads, tuning), reading_pool(path, reactor, threads, tuning)

    def open_file() -> Deferred[None]:
        return deferToThreadPool(reactor, writing.threadpool, lambda: migrate(path, schema, tuning.busy_seconds))

    return _Pools(reactor, writing, reading), open_file


def _use_server(
    address: ServerAddress, reactor: Any, tuning: Tuning, threads: Threads
) -> tuple[_Pools, Callable[[], Deferred[None]]]:
    """Return the pools of a database on a server, and the function that creates or migrates its schema.

    :raises StoreUnavailable: if the package psycopg is not installed.
    """
    try:
        from ._server import PostgreSQLPool, run
        from ._server_schema import migrate_server
    except ImportError as error:
        raise StoreUnavailable(f"PostgreSQL needs the package psycopg ({error}). {INSTALL}") from None
    writing = PostgreSQLPool(address, reactor, threads, tuning, writes=True)
    reading = PostgreSQLPool(address, reactor, threads, tuning, writes=False)
    return _Pools(reactor, writing, reading), lambda: run(writing, migrate_server)
