"""The record as a whole, over SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import frozen
from zope.interface import implementer

from aileron.interfaces import IArchive
from aileron.values import Checkpoint, Maced, Row

from . import _audit_checkpoints_table as checkpoints_table
from . import _audit_events_table as events_table
from . import _audit_macs_table as macs_table
from . import _audit_payloads_table as payloads_table
from ._readers import Readers
from ._shield import shielded
from ._writer import Writer


@implementer(IArchive)
@frozen
class SQLiteArchive:
    """See L{IArchive}."""

    _writer: Writer
    _readers: Readers

    async def rows(self, after: int, limit: int, until: int | None = None) -> Sequence[Row]:
        """See L{IArchive.rows}."""
        return await self._readers.read(events_table.rows, after, limit, until)

    async def bounds(self, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """See L{IArchive.bounds}."""
        return await self._readers.read(events_table.bounds, since, until)

    async def checkpoints(self, after: int = 0, until: int | None = None) -> Sequence[Checkpoint]:
        """See L{IArchive.checkpoints}."""
        return await self._readers.read(checkpoints_table.between, after, until)

    async def latest_checkpoint(self) -> Checkpoint | None:
        """See L{IArchive.latest_checkpoint}."""
        return await self._readers.read(checkpoints_table.latest)

    async def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """See L{IArchive.put_checkpoint}."""
        await shielded(self._writer.write(checkpoints_table.insert, checkpoint))

    async def first_of(self, period: str) -> int | None:
        """See L{IArchive.first_of}."""
        return await self._readers.read(macs_table.first, period)

    async def count_of(self, period: str) -> int:
        """See L{IArchive.count_of}."""
        return await self._readers.read(macs_table.count, period)

    async def macs(self, after: int, limit: int) -> Sequence[Maced]:
        """See L{IArchive.macs}."""
        return await self._readers.read(macs_table.along, after, limit)

    async def oldest_contents(self) -> int | None:
        """See L{IArchive.oldest_contents}."""
        return await self._readers.read(payloads_table.oldest)

    async def prune(self, up_to: int, limit: int) -> int:
        """See L{IArchive.prune}."""
        return await shielded(self._writer.write(payloads_table.delete, up_to, limit))
