"""The store: creation, opening, its parts, and closing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.enterprise.adbapi import ConnectionPool
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from aileron.model.interfaces.store import IAudit, IBindingFlags, IInBandMemories, IRuns, ISessions, IWatermarks

from ._audit import Seals, SQLiteArchive, SQLiteAudit
from ._connections import Readers, Threads, Tuning, reading_pool, writing_pool
from ._in_band import SQLiteInBandMemories
from ._memories import SQLiteBindingFlags, SQLiteContents, SQLiteUsage, SQLiteWatermarks
from ._migration import Schema, migrate, shipped
from ._runs import SQLiteRuns
from ._sessions import SQLiteSessions
from ._snoozes import SQLiteSnoozes
from ._spending import SQLiteSpending
from ._tool_claims import SQLiteToolClaims
from ._writer import Writer


@frozen
class _Pools:
    """The connection pools of a store.

    :ivar reactor: the reactor that delivers results.
    """

    reactor: Any
    writing: ConnectionPool
    reading: ConnectionPool

    def close(self) -> None:
        """Close the connections and end the threads."""
        self.reading.close()
        self.writing.close()


@frozen
class Store:
    """A SQLite file, with one attribute for each kind of content. Call L{open} before use and L{close} after.

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
    """

    runs: IRuns
    audit: IAudit
    archive: SQLiteArchive
    sessions: ISessions
    contents: SQLiteContents
    watermarks: IWatermarks
    flags: IBindingFlags
    usage: SQLiteUsage
    spending: SQLiteSpending
    in_band: IInBandMemories
    snoozes: SQLiteSnoozes
    tool_claims: SQLiteToolClaims
    _path: Path
    _schema: Schema
    _tuning: Tuning
    _pools: _Pools
    _writer: Writer
    _readers: Readers
    _flushes: Sequence[Callable[[], Deferred[None]]]

    async def open(self) -> None:
        """Create the database, or migrate it to this version's schema.

        :raises NewerDatabase: if a newer version wrote the file, which is unchanged.
        :raises ForeignDatabase: if the file is not a database of Aileron. It is unchanged.
        :raises StoreUnavailable: if the database cannot be used now.
        """
        busy = self._tuning.busy_seconds
        pool = self._pools.writing.threadpool
        await deferToThreadPool(self._pools.reactor, pool, lambda: migrate(self._path, self._schema, busy))

    async def close(self) -> None:
        """Write cached data, finish queued writes, and close the connections.

        Further calls are refused. Idempotent.
        """
        for flush in self._flushes:
            await flush()
        await self._writer.close()
        await self._readers.close()
        self._pools.close()


def make_store(
    path: Path,
    reactor: Any,
    clock: IReactorTime,
    seals: Seals,
    tuning: Tuning | None = None,
    threads: Threads = ThreadPool,
    schema: Schema | None = None,
) -> Store:
    """Return a store for the file at C{path}, not yet opened.

    :param reactor: the reactor for the thread pools: C{callWhenRunning}, C{callFromThread} and shutdown triggers.
    :param clock: the clock for the expiry of keys and for last uses of sessions.
    :param schema: a schema other than the shipped one, only for tests.
    """
    tuning = tuning or Tuning()
    pools = _Pools(
        reactor,
        writing_pool(path, reactor, threads, tuning),
        reading_pool(path, reactor, threads, tuning),
    )
    writer, readers = Writer(pools.writing, tuning.max_batch, seals.before_commit), Readers(pools.reading)
    sessions, usage = SQLiteSessions(writer, readers, clock, seals), SQLiteUsage(writer, readers, clock)
    spending = SQLiteSpending(writer, readers, clock)
    return Store(
        runs=SQLiteRuns(writer, readers, clock, seals),
        audit=SQLiteAudit(writer, readers, seals, clock),
        archive=SQLiteArchive(writer, readers),
        sessions=sessions,
        contents=SQLiteContents(writer, readers),
        watermarks=SQLiteWatermarks(writer, readers),
        flags=SQLiteBindingFlags(writer, readers, seals),
        usage=usage,
        spending=spending,
        in_band=SQLiteInBandMemories(writer, readers, clock),
        snoozes=SQLiteSnoozes(writer, readers, clock, seals),
        tool_claims=SQLiteToolClaims(writer, readers, clock),
        path=path,
        schema=schema or shipped(),
        tuning=tuning,
        pools=pools,
        writer=writer,
        readers=readers,
        flushes=(sessions.flush, usage.flush, spending.flush),
    )
