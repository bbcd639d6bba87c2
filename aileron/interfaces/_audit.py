"""The record: appended to and read, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from zope.interface import Interface

from aileron.values import AuditQuery, DailyWait, Event, Page, Record


class IAudit(Interface):
    """An append-only, hash-chained record.

    What changes a run is recorded with the change, by L{IRuns}; this is for the rest.
    """

    async def append(*events: Event) -> None:
        """Keep C{events}, in order, in one transaction; durable when it returns.

        What it records has happened: cancelling ends the wait, and never takes them back.

        :raises StoreUnavailable: nothing of it was kept.
        """

    async def head() -> tuple[int, str] | None:
        """Sequence and hash of the newest record, or L{None}."""

    async def at(sequence: int) -> str | None:
        """Return the hash of the record of that number, or L{None}: there is none."""

    async def get(audit_id: str) -> Record | None:
        """One record, or L{None}."""

    async def news(sequence: int, seconds: float) -> tuple[Record, ...]:
        """Wait for records after that one, oldest first, at most 256; after C{seconds}, none.

        Many may wait.  Cancelling ends the wait.
        """

    async def count_daily(since: datetime, types: Sequence[str]) -> Sequence[tuple[date, str, int]]:
        """Count the records of these types since then, by the day in UTC and by type; the oldest day first."""

    async def time_daily(since: datetime, begin: str, ends: Sequence[str]) -> Sequence[DailyWait]:
        """Measure how long runs waited for a person, by the day in UTC on which the wait ended; the oldest day first.

        Days without any are left out.  Where the clock was set back meanwhile, the wait counts as no time at all.

        :param begin: the type of record whose first in a run begins the wait.
        :param ends: the types that end it, where a person caused the record.
        """

    async def list(query: AuditQuery) -> Page[Record]:
        """List records, newest first.

        :raises InvalidRequest: a cursor that this list did not give.
        """
