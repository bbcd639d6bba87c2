"""Verifies and exports the whole audit log, and deletes old contents. It defines the database operations for that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.base.json import utc
from aileron.model.audit import Checkpoint, Event, Maced, Row, Verdict
from aileron.model.errors import Conflict
from aileron.model.interfaces.store import IAudit

from ._chain import GENESIS, PRUNED
from ._export import Exporting, record_line
from .verify import BEFORE_ALL, Verification

_SLICE, _SIGNATURES = 500, 40
"""The numbers of rows and of signatures per step. Each step takes a few milliseconds of the reactor's time."""
_BATCH = 200


class RecordArchive(Protocol):
    """The database operations on the complete audit log.

    Every method raises L{aileron.model.errors.StoreUnavailable} if the database fails.
    """

    async def rows(self, after: int, limit: int, until: int | None = None) -> Sequence[Row]:
        """Return at most C{limit} records with a sequence above C{after}, up to C{until}, oldest first.

        :raises StoreUnavailable: if the database fails.
        """

    async def bounds(self, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """Return two sequences: of the last record before C{since}, and of the last record before C{until}.

        :raises StoreUnavailable: if the database fails.
        """

    async def checkpoints(self, after: int = 0, until: int | None = None) -> Sequence[Checkpoint]:
        """Return the checkpoints of records above C{after}, up to C{until}, in their order.

        :raises StoreUnavailable: if the database fails.
        """

    async def latest_checkpoint(self) -> Checkpoint | None:
        """Return the newest checkpoint, or None if there is none.

        :raises StoreUnavailable: if the database fails.
        """

    async def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Append C{checkpoint} durably.

        :raises StoreUnavailable: if the database fails.
        """

    async def follow_checkpoint(self, checkpoint: Checkpoint) -> bool:
        """Append C{checkpoint} durably if its predecessor is still the newest one. Return whether it was appended.

        :raises StoreUnavailable: if the database fails.
        """

    async def first_of(self, period: str) -> int | None:
        """Return the sequence of the first record of a locked period, or None if it has no records.

        :raises StoreUnavailable: if the database fails.
        """

    async def count_of(self, period: str) -> int:
        """Return the number of records of a locked period.

        :raises StoreUnavailable: if the database fails.
        """

    async def macs(self, after: int, limit: int) -> Sequence[Maced]:
        """Return at most C{limit} records with a sequence above C{after}, oldest first, with their MACs.

        :raises StoreUnavailable: if the database fails.
        """

    async def oldest_contents(self) -> int | None:
        """Return the sequence of the oldest record that still has its contents, or None if there is none.

        :raises StoreUnavailable: if the database fails.
        """

    async def prune(self, up_to: int, limit: int) -> int:
        """Permanently delete the contents of at most C{limit} of the oldest records up to the sequence C{up_to}.

        :return: the number of records whose contents were deleted. If 0, none is left.
        :raises StoreUnavailable: if the database fails.
        """


async def verify_record(archive: RecordArchive, clock: IReactorTime, sealed: Mapping[str, tuple[int, str]]) -> Verdict:
    """Verify the complete audit log against its checkpoints and C{sealed}, in slices between which the reactor runs.

    :param sealed: maps each further witness, such as the vault, to the sequence and hash that the log must contain.
    :return: the verdict, with the first fault if there is one.
    :raises StoreUnavailable: if the log cannot be read.
    """
    verification = Verification(await archive.checkpoints(), sealed=sealed)
    while verification.check(_SIGNATURES):
        await deferLater(clock, 0)
    after = BEFORE_ALL
    while verification.going and (rows := await archive.rows(after, _SLICE)):
        verification.feed(rows)
        after = rows[-1][0]
    return verification.end()


async def export_record(
    archive: RecordArchive, since: datetime | None, until: datetime | None, *, version: str
) -> AsyncIterator[bytes]:
    """Yield the records of a period as lines of JSON, read from the database in slices.

    :raises Conflict: if the audit log has a gap before the first exported record.
    :raises StoreUnavailable: if the audit log cannot be read.
    """
    # Read the checkpoints first: the record keeps growing, and a checkpoint must not name a record beyond this export.
    checkpoints = await archive.checkpoints()
    after, last = await archive.bounds(since, until)
    told = [each for each in checkpoints if after < each.sequence and (until is None or each.sequence <= last)]
    before = await archive.rows(after - 1, 1, after) if after else ()
    if after and not before:
        raise Conflict("The record has a gap where this part would begin.")
    exporting = Exporting(after, before[0][13] if before else GENESIS, max(after, last), told)
    yield "".join(exporting.head(version)).encode()
    while after < exporting.until and (rows := await archive.rows(after, _SLICE, exporting.until)):
        yield "".join(map(record_line, rows)).encode("utf-8", "surrogatepass")
        after = rows[-1][0]
    yield exporting.end().encode()


@frozen
class Retention:
    """Deletes the contents of records that are older than a number of days.

    The hash chain, and a record of each deletion, remain.

    :param write: returns an event of the daemon, dated now, from its type and payload.
    """

    _audit: IAudit
    _archive: RecordArchive
    _clock: IReactorTime
    _write: Callable[..., Event]
    _days: int

    async def prune(self) -> int:
        """Delete the contents of all records older than the configured days, in small batches.

        The deletion is recorded first, because missing contents without such a record are a sign of tampering.

        :return: the number of records whose contents were deleted.
        :raises StoreUnavailable: if the database failed. The next call deletes the rest.
        """
        since = utc(self._clock.seconds()) - timedelta(days=self._days)
        up_to, _last = await self._archive.bounds(since, None)
        oldest = await self._archive.oldest_contents()
        if oldest is None or oldest > up_to:
            return 0
        await self._audit.append(self._write(PRUNED, up_to=up_to, keep_payloads_days=self._days))
        done = 0
        while deleted := await self._archive.prune(up_to, _BATCH):
            done += deleted
        return done
