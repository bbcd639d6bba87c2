"""Deletes old contents of the record; what it holds of them, and that they were deleted, stays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IAudit
from aileron.values import Event, utc

from ._chain_verifier import PRUNED
from ._record_reader import RecordArchive

_BATCH = 200


@frozen
class Retention:
    """Keeps contents for so many days.

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
