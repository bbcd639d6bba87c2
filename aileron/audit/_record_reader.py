"""Goes through the whole record while it is written, a slice at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.errors import Conflict
from aileron.interfaces import IArchive
from aileron.values import Checkpoint, Verdict

from ._export import Exporting, record_line
from ._seal import GENESIS
from .verify import BEFORE_ALL, Verification

_SLICE, _SIGNATURES = 500, 40
"""Each some milliseconds of the reactor's time."""


@frozen
class RecordReader:
    """The record as a whole, read slice by slice; others are served between two slices."""

    _archive: IArchive
    _clock: IReactorTime

    async def verify(self, sealed: Mapping[str, tuple[int, str]]) -> Verdict:
        """Verify the whole record slice by slice, against its checkpoints and C{sealed}.

        :param sealed: who else tells how far the record must reach, and to which hash.
        """
        verification = Verification(await self._archive.checkpoints(), sealed=sealed)
        while verification.check(_SIGNATURES):
            await deferLater(self._clock, 0)
        after = BEFORE_ALL
        while verification.going and (rows := await self._archive.rows(after, _SLICE)):
            verification.feed(rows)
            after = rows[-1][0]
        return verification.end()

    async def export(self, since: datetime | None, until: datetime | None, version: str) -> AsyncIterator[bytes]:
        """Export the records of a time as lines of JSON, read slice by slice.

        :raises Conflict: the record has a gap where the part would begin.
        """
        # First: of a record that goes on growing none must tell of what is not in this part yet.
        checkpoints = await self._archive.checkpoints()
        after, last = await self._archive.bounds(since, until)
        told = [each for each in checkpoints if after < each.sequence and (until is None or each.sequence <= last)]
        exporting = await self._exporting(after, max(after, last), told)
        yield "".join(exporting.head(version)).encode()
        while after < exporting.until and (rows := await self._archive.rows(after, _SLICE, exporting.until)):
            yield "".join(map(record_line, rows)).encode("utf-8", "surrogatepass")
            after = rows[-1][0]
        yield exporting.end().encode()

    async def _exporting(self, after: int, until: int, checkpoints: Sequence[Checkpoint]) -> Exporting:
        before = await self._archive.rows(after - 1, 1, after) if after else ()
        if after and not before:
            raise Conflict("The record has a gap where this part would begin.")
        previous = before[0][13] if before else GENESIS
        return Exporting(after, previous, until, checkpoints)
