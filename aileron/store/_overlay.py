"""The overlay over SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from attrs import define
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.interfaces import IOverlay
from aileron.values import Event, utc

from . import _action_overlay_table as overlay_table
from ._chain import Seals, keep
from ._readers import Readers
from ._shield import shielded
from ._writer import Writer


@implementer(IOverlay)
@define(eq=False)
class SQLiteOverlay:
    """See L{IOverlay}.  Read from the file once, then known: nobody else writes it."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _seals: Seals
    _known: frozenset[str] | None = None

    async def disabled(self) -> frozenset[str]:
        """See L{IOverlay.disabled}."""
        if self._known is None:
            read = await self._readers.read(overlay_table.disabled)
            self._known = read if self._known is None else self._known  # a switch meanwhile knows better
        return self._known

    async def set_enabled(self, action: str, enabled: bool, events: Sequence[Event]) -> None:
        """See L{IOverlay.set_enabled}."""
        now = utc(self._clock.seconds())
        written = self._writer.write(_switch, self._seals, action, enabled, now, tuple(events))
        await shielded(written.addCallback(self._learn))

    def _learn(self, disabled: frozenset[str]) -> None:
        self._known = disabled


def _switch(
    cursor: sqlite3.Cursor, seals: Seals, action: str, enabled: bool, at: datetime, events: Sequence[Event]
) -> frozenset[str]:
    overlay_table.put(cursor, action, enabled, at)
    keep(cursor, seals, events)
    return overlay_table.disabled(cursor)
