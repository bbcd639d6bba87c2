"""The record over SQLite."""

from __future__ import annotations

from attrs import frozen
from zope.interface import implementer

from aileron.interfaces import IAudit
from aileron.values import AuditQuery, Event, Page, Record

from . import _audit_events_table as events_table
from ._chain import Seals, keep
from ._cursors import after, page
from ._readers import Readers
from ._shield import shielded
from ._writer import Writer


@implementer(IAudit)
@frozen
class SQLiteAudit:
    """See L{IAudit}."""

    _writer: Writer
    _readers: Readers
    _seals: Seals

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
        return await self._readers.read(events_table.get, audit_id)

    async def list(self, query: AuditQuery) -> Page[Record]:
        """See L{IAudit.list}."""
        rows = await self._readers.read(events_table.select, query, after("audit", query.cursor))
        return page("audit", rows, query.limit)
