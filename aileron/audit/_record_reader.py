"""The whole record: what the database must offer of it, a look through it, and the deletion of old contents."""

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
"""Each some milliseconds of the reactor's time."""
_BATCH = 200


class RecordArchive(Protocol):
    """The whole record in the database, as opposed to one event of it.

    Every method raises L{aileron.model.errors.StoreUnavailable} where the database refuses.
    """

    async def rows(self, after: int, limit: int, until: int | None = None) -> Sequence[Row]:
        """List records above the sequence C{after}, up to C{until}, oldest first, at most C{limit}."""

    async def bounds(self, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """Find the sequence before the first record at or after C{since}, and of the last before C{until}."""

    async def checkpoints(self, after: int = 0, until: int | None = None) -> Sequence[Checkpoint]:
        """Those about records above C{after}, up to C{until}, in their order."""

    async def latest_checkpoint(self) -> Checkpoint | None:
        """Return the newest, or L{None}."""

    async def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep C{checkpoint} after all others; durable when it returns."""

    async def first_of(self, period: str) -> int | None:
        """Find the sequence of the first record of a locked period; L{None}: there is none."""

    async def count_of(self, period: str) -> int:
        """Count the records of a locked period."""

    async def macs(self, after: int, limit: int) -> Sequence[Maced]:
        """List records above the sequence C{after}, oldest first, at most C{limit}, with their MACs."""

    async def oldest_contents(self) -> int | None:
        """Return the sequence of the oldest record that has its contents, or L{None}: none has."""

    async def prune(self, up_to: int, limit: int) -> int:
        """Delete the contents of at most C{limit} of the oldest records up to the sequence C{up_to}, for good.

        :return: how many; 0: none is left.
        """


async def verify_record(archive: RecordArchive, clock: IReactorTime, sealed: Mapping[str, tuple[int, str]]) -> Verdict:
    """Verify the whole record slice by slice, against its checkpoints and C{sealed}; others are served in between.

    :param sealed: who else tells how far the record must reach, and to which hash.
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
    """Export the records of a time as lines of JSON, read slice by slice; others are served in between.

    :raises Conflict: the record has a gap where the part would begin.
    """
    # First: of a record that goes on growing none must tell of what is not in this part yet.
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
    """Keeps contents for so many days; what the record says of them, and that they were deleted, stays.

    :param write: an event of the daemon's own, now: its type and payload.
    """

    _audit: IAudit
    _archive: RecordArchive
    _clock: IReactorTime
    _write: Callable[..., Event]
    _days: int

    async def prune(self) -> int:
        """Delete the contents of all records that come before the first of the last days, in small batches.

        It is put on record first: contents that are missing without a word of it are what an intruder leaves.

        :return: how many.
        :raises StoreUnavailable: the rest stays for the next time.
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
