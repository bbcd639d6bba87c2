"""Follows the record from where the operator was told last, through restarts: what happened is told once."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.errors import StoreUnavailable
from aileron.interfaces import IAudit, IWatermarks
from aileron.values import Event

ROW = "notices"
"""The watermark: up to which sequence the operator was told."""

MOST_BEHIND = 5000
"""Of a longer record that nobody was told of only so much is looked at."""

_WAIT_SECONDS, _BREATH_SECONDS, _PAUSE_SECONDS = 300.0, 0.5, 5.0
_log = Logger()


@define(eq=False)
class Following:
    """Reads the record as it grows.

    :param hear: called with each event, in order.
    :ivar sequence: of the last event that was heard.
    """

    _audit: IAudit
    _watermarks: IWatermarks
    _clock: IReactorTime
    _hear: Callable[[Event], None]
    sequence: int = field(default=0, init=False)
    _told: int = field(default=0, init=False)

    async def begin(self) -> None:
        """Take up where an earlier life was; the first one of all begins with what happens from now on.

        :raises StoreUnavailable: it cannot be told where that is.
        """
        head = await self._audit.head()
        end = 0 if head is None else head[0]
        written = (await self._watermarks.all()).get(ROW)
        if written is None:
            await self._watermarks.put(ROW, str(end))
        self.sequence = self._told = _place(written, end)

    async def follow(self) -> None:
        """Read on until this is cancelled, whatever the store may say, and whatever one record may do to us."""
        while True:
            try:
                heard = await self._read()
            except CancelledError:
                raise
            except StoreUnavailable as error:
                _log.warn("what is to be told cannot be read yet: {why}", why=error.message)
                await deferLater(self._clock, _PAUSE_SECONDS)
                continue
            except Exception:  # noqa: BLE001 - a timer's rim: who is told of nothing any more would not know
                _log.failure("hearing what is to be told")
                await deferLater(self._clock, _PAUSE_SECONDS)
                continue
            if heard:  # else the store itself has waited
                await deferLater(self._clock, _BREATH_SECONDS)

    async def told(self, sequence: int) -> None:
        """Keep that the operator was told of all up to C{sequence}; a failure leaves it for the next time."""
        if sequence <= self._told:
            return
        self._told = sequence
        try:
            await self._watermarks.put(ROW, str(sequence))
        except StoreUnavailable as error:
            _log.warn("what was told may be told once more after a restart: {why}", why=error.message)

    async def _read(self) -> bool:
        news = await self._audit.news(self.sequence, _WAIT_SECONDS)
        for record in news:
            self.sequence = record.sequence  # before it is heard: one that cannot be is not heard for ever
            self._hear(record.event)
        return bool(news)


def _place(written: str | None, end: int) -> int:
    """Where to go on: not beyond the end, which may have been put back, and not too far before it."""
    if written is None or not written.isdecimal() or len(written) > 18:
        return end
    return max(min(int(written), end), end - MOST_BEHIND)
