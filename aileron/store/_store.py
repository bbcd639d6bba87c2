"""The store as a whole: made, opened, used, closed."""

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
from ._writer import Writer


@frozen
class _Pools:
    """The threads and their connections.

    :ivar reactor: what results are told by.
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
    """One SQLite file, by what is kept in it.  L{open} it before use, L{close} it after.

    What is written through one part is one transaction, and the other parts see it once it is committed.

    :ivar runs: runs, their approvals, steps and attempts.
    :ivar audit: the record, event by event.
    :ivar archive: the record as a whole.
    :ivar sessions: agents' sessions.
    :ivar contents: texts that were trusted once.
    :ivar watermarks: how far other things had come.
    :ivar flags: flags of bindings.
    :ivar usage: what calls to language models used.
    :ivar in_band: what in-band mode hid from its clients.
    """

    runs: IRuns
    audit: IAudit
    archive: SQLiteArchive
    sessions: ISessions
    contents: SQLiteContents
    watermarks: IWatermarks
    flags: IBindingFlags
    usage: SQLiteUsage
    in_band: IInBandMemories
    _path: Path
    _schema: Schema
    _tuning: Tuning
    _pools: _Pools
    _writer: Writer
    _readers: Readers
    _flushes: Sequence[Callable[[], Deferred[None]]]

    async def open(self) -> None:
        """Make the database, or bring it up to this version's schema.

        :raises NewerDatabase: a newer version wrote it; it is untouched.
        :raises ForeignDatabase: it is no database of Aileron's; it is untouched.
        :raises StoreUnavailable: it cannot be used now.
        """
        busy = self._tuning.busy_seconds
        pool = self._pools.writing.threadpool
        await deferToThreadPool(self._pools.reactor, pool, lambda: migrate(self._path, self._schema, busy))

    async def close(self) -> None:
        """Write what is only noted so far, let pending writes become durable, and close the connections.

        Nothing more is taken from here on.  Twice is safe.
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
    """Make a store on the file at C{path}, not yet opened.

    :param reactor: runs the thread pools: C{callWhenRunning}, C{callFromThread} and shutdown triggers.
    :param clock: for expiry of keys and for when sessions were seen.
    :param schema: other than the shipped one only in tests.
    """
    tuning = tuning or Tuning()
    pools = _Pools(
        reactor,
        writing_pool(path, reactor, threads, tuning),
        reading_pool(path, reactor, threads, tuning),
    )
    writer, readers = Writer(pools.writing, tuning.max_batch, seals.before_commit), Readers(pools.reading)
    sessions, usage = SQLiteSessions(writer, readers, clock, seals), SQLiteUsage(writer, readers, clock)
    return Store(
        runs=SQLiteRuns(writer, readers, clock, seals),
        audit=SQLiteAudit(writer, readers, seals, clock),
        archive=SQLiteArchive(writer, readers),
        sessions=sessions,
        contents=SQLiteContents(writer, readers),
        watermarks=SQLiteWatermarks(writer, readers),
        flags=SQLiteBindingFlags(writer, readers, seals),
        usage=usage,
        in_band=SQLiteInBandMemories(writer, readers, clock),
        path=path,
        schema=schema or shipped(),
        tuning=tuning,
        pools=pools,
        writer=writer,
        readers=readers,
        flushes=(sessions.flush, usage.flush),
    )
