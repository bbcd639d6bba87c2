"""The audit record in the database: each event is numbered, salted and sealed in the transaction that it records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Protocol

from attrs import frozen
from twisted.internet.defer import TimeoutError
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import compact
from aileron.model.audit import NO_CHECKPOINT, ChainLink, Checkpoint, Event, Maced, Record, Row
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery, DailyWait, Page

from . import _audit_tables as tables
from ._bulletin import Bulletin
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._table import make_page, read_cursor
from ._writer import Writer

_MOST_NEWS = 256
_LATEST = "ORDER BY number DESC LIMIT 1"


class EventObserver(Protocol):
    """An observer of each event in the transaction that stores it, and of each commit.

    All methods are called in the writer's thread, one at a time, and must not raise.
    """

    @property
    def wants_commit(self) -> bool:
        """True if L{note_commit} must be called after the next commit."""

    def compare_end(self, end: tuple[int, str]) -> None:
        """Compare the end of the record, sequence and hash, before records are appended, to detect other writers."""

    def expect_end(self, end: tuple[int, str]) -> None:
        """Add C{end} to the expected ends of the record. The transaction may still be rolled back."""

    def note_events(self, events: Iterable[Event]) -> None:
        """Record that C{events} are being stored. They may be rolled back and passed again."""

    def make_mac(self, sequence: int, sealed: str) -> tuple[str, bytes] | None:
        """Return the locked period and MAC for a record's hash, or None while the vault is unlocked or without a key.

        If a record is rolled back and its sequence is used again, the second MAC is made with the same key.
        """

    def note_commit(self, end: tuple[int, str]) -> None:
        """Record that all records up to C{end}, sequence and hash, are durable."""


@frozen
class Seals:
    """The functions that seal the record. The store only calls them.

    :ivar genesis: the previous hash of the first record.
    :ivar seal: returns the hash of a record from the previous hash and the record's link.
    :ivar payload_digest: returns the digest of a salt and a payload's text.
    :ivar salt: returns a new unpredictable salt.
    :ivar observer: the observer of stored events, or None.
    :ivar bulletin: collects events for notices to other daemons, or None if there are no others.
    """

    genesis: str
    seal: Callable[[str, ChainLink], str]
    payload_digest: Callable[[str, str], str]
    salt: Callable[[], str]
    observer: EventObserver | None = None
    bulletin: Bulletin | None = None

    def append(self, cursor: Cursor, events: Iterable[Event]) -> None:
        """Append C{events} to the chain in order, and show them to the observer, if there is one."""
        last, previous = self._end(cursor)
        if self.observer is not None:
            self.observer.compare_end((last, previous))
        records, payloads = [], []
        for sequence, event in enumerate(events, last + 1):
            salt, payload = self.salt(), compact(event.payload)
            link = ChainLink(sequence, event, self.payload_digest(salt, payload))
            record = Record(sequence, event, previous, self.seal(previous, link), link.payload_digest, salt)
            records.append(record)
            payloads.append((sequence, salt, payload))
            previous = record.hash
        tables.insert(cursor, records, payloads)
        if self.bulletin is not None:
            self.bulletin.note(record.event for record in records)
        if self.observer is not None and records:
            _show(cursor, self.observer, records)

    def before_commit(self, cursor: Cursor) -> Callable[[], None] | None:
        """Return the function to call once this transaction is durable, or None if there is none."""
        if self.bulletin is not None:
            self.bulletin.send(cursor)
        observer = self.observer
        if observer is None or not observer.wants_commit:
            return None
        end = self._end(cursor)
        return lambda: observer.note_commit(end)

    def _end(self, cursor: Cursor) -> tuple[int, str]:
        return tables.head(cursor) or (0, self.genesis)


def _show(cursor: Cursor, observer: EventObserver, records: Sequence[Record]) -> None:
    last = records[-1]
    observer.expect_end((last.sequence, last.hash))
    observer.note_events(record.event for record in records)
    macs = [(record.sequence, observer.make_mac(record.sequence, record.hash)) for record in records]
    tables.insert_macs(cursor, [(sequence, *mac) for sequence, mac in macs if mac is not None])


@implementer(IAudit)
@frozen
class SQLAudit:
    """Appends events to the audit record, and reads, lists and counts its events."""

    _writer: Writer
    _readers: Readers
    _seals: Seals
    _clock: IReactorTime

    async def append(self, *events: Event) -> None:
        await shielded(self._writer.write(self._seals.append, events))

    async def head(self) -> tuple[int, str] | None:
        return await self._readers.read(tables.head)

    async def at(self, sequence: int) -> str | None:
        return await self._readers.read(tables.hash_at, sequence)

    async def get(self, audit_id: str) -> Record | None:
        return await self._readers.read(tables.get, self._seals.payload_digest, audit_id)

    async def news(self, sequence: int, seconds: float) -> tuple[Record, ...]:
        deadline = self._clock.seconds() + seconds
        while True:
            commits = self._writer.commits
            found = await self._readers.read(tables.after, self._seals.payload_digest, sequence, _MOST_NEWS)
            left = deadline - self._clock.seconds()
            if found or left <= 0:
                return found
            with suppress(TimeoutError):
                await self._writer.committed.wait(over=self._writer.commits != commits).addTimeout(left, self._clock)

    async def count_daily(self, since: datetime, types: Sequence[str]) -> Sequence[tuple[date, str, int]]:
        return await self._readers.read(tables.count_daily, since, types)

    async def time_daily(self, since: datetime, begin: str, ends: Sequence[str]) -> Sequence[DailyWait]:
        return await self._readers.read(tables.time_daily, since, begin, ends)

    async def list(self, query: AuditQuery) -> Page[Record]:
        before = read_cursor("audit", query.cursor)
        rows, limit = await self._readers.read(tables.select, self._seals.payload_digest, query, before)
        return make_page("audit", rows, limit)


def _follow_checkpoint(cursor: Cursor, checkpoint: Checkpoint) -> bool:
    latest = tables.CHECKPOINTS.find(cursor, _LATEST)
    # guard of several daemons: the checkpoints of all daemons follow each other
    #    -> functional.test_store_several.OrderTests.test_checkpoints
    if (NO_CHECKPOINT if latest is None else latest.digest) != checkpoint.previous:
        return False
    tables.CHECKPOINTS.insert(cursor, (checkpoint,))
    return True


@frozen
class SQLArchive:
    """Reads the complete audit record, its checkpoints and MACs, appends checkpoints, and deletes old contents."""

    _writer: Writer
    _readers: Readers

    async def rows(self, after: int, limit: int, until: int | None = None) -> Sequence[Row]:
        return await self._readers.read(tables.rows, after, limit, until)

    async def bounds(self, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        return await self._readers.read(tables.bounds, since, until)

    async def checkpoints(self, after: int = 0, until: int | None = None) -> Sequence[Checkpoint]:
        return await self._readers.read(tables.checkpoints, after, until)

    async def latest_checkpoint(self) -> Checkpoint | None:
        return await self._readers.read(tables.CHECKPOINTS.find, _LATEST)

    async def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        await shielded(self._writer.write(tables.CHECKPOINTS.insert, (checkpoint,)))

    async def follow_checkpoint(self, checkpoint: Checkpoint) -> bool:
        return await shielded(self._writer.write(_follow_checkpoint, checkpoint))

    async def first_of(self, period: str) -> int | None:
        return await self._readers.read(tables.first_mac, period)

    async def count_of(self, period: str) -> int:
        return await self._readers.read(tables.count_macs, period)

    async def macs(self, after: int, limit: int) -> Sequence[Maced]:
        return await self._readers.read(tables.macs_along, after, limit)

    async def oldest_contents(self) -> int | None:
        return await self._readers.read(tables.oldest_payload)

    async def prune(self, up_to: int, limit: int) -> int:
        return await shielded(self._writer.write(tables.delete_payloads, up_to, limit))
