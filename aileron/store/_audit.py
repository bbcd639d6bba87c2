"""The record over SQLite."""

from __future__ import annotations

from contextlib import suppress

from attrs import frozen
from twisted.internet.defer import TimeoutError
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.interfaces import IAudit
from aileron.values import AuditQuery, Event, Page, Record

from . import _audit_events_table as events_table
from ._chain import Seals, keep
from ._cursors import after, page
from ._readers import Readers
from ._shield import shielded
from ._writer import Writer

_MOST_NEWS = 256


@implementer(IAudit)
@frozen
class SQLiteAudit:
    """See L{IAudit}."""

    _writer: Writer
    _readers: Readers
    _seals: Seals
    _clock: IReactorTime

    async def append(self, *events: Event) -> None:
        """See L{IAudit.append}."""
        await shielded(self._writer.write(keep, self._seals, events))

    async def head(self) -> tuple[int, str] | None:
        """See L{IAudit.head}."""
        return await self._readers.read(events_table.head)

    async def at(self, sequence: int) -> str | None:
        """See L{IAudit.at}."""
        return await self._readers.read(events_table.hash_at, sequence)

    async def get(self, audit_id: str) -> Record | None:
        """See L{IAudit.get}."""
        return await self._readers.read(events_table.get, self._seals.payload_digest, audit_id)

    async def news(self, sequence: int, seconds: float) -> tuple[Record, ...]:
        """See L{IAudit.news}."""
        deadline = self._clock.seconds() + seconds
        while True:
            commits = self._writer.commits
            found = await self._readers.read(events_table.after, self._seals.payload_digest, sequence, _MOST_NEWS)
            left = deadline - self._clock.seconds()
            if found or left <= 0:
                return found
            with suppress(TimeoutError):
                await self._writer.committed.wait(over=self._writer.commits != commits).addTimeout(left, self._clock)

    async def list(self, query: AuditQuery) -> Page[Record]:
        """See L{IAudit.list}."""
        before = after("audit", query.cursor)
        rows = await self._readers.read(events_table.select, self._seals.payload_digest, query, before)
        return page("audit", rows, query.limit)
