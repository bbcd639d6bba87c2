"""Stores in the database until when the operator has put pending requests aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import from_timestamp, timestamp, utc
from aileron.model.audit import Event

from ._audit import Seals
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._writer import Writer

_PUT = """
    INSERT INTO snoozes (run_id, until)
    SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = ? AND state <> 'pending_approval')
    ON CONFLICT (run_id) DO UPDATE SET until = excluded.until
"""
_REMOVE = "DELETE FROM snoozes WHERE run_id = ?"
_EXPIRE = "DELETE FROM snoozes WHERE until <= ?"
_ALL = "SELECT run_id, until FROM snoozes WHERE until > ?"


@frozen
class SQLSnoozes:
    """Stores C{snoozes}. A trigger deletes the snooze of a run that is no longer pending."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _seals: Seals

    async def all(self) -> Mapping[str, datetime]:
        return await self._readers.read(_select, self._now())

    async def put(self, run_id: str, until: datetime | None, events: Sequence[Event]) -> bool:
        return await shielded(self._writer.write(_put, self._seals, run_id, until, self._now(), tuple(events)))

    def _now(self) -> datetime:
        return utc(self._clock.seconds())


def _put(
    cursor: Cursor, seals: Seals, run_id: str, until: datetime | None, now: datetime, events: Sequence[Event]
) -> bool:
    cursor.execute(_EXPIRE, (timestamp(now),))
    if until is None:
        changed = cursor.execute(_REMOVE, (run_id,)).rowcount
    else:
        changed = cursor.execute(_PUT, (run_id, timestamp(until), run_id)).rowcount
    if changed:
        seals.append(cursor, events)
    return bool(changed)


def _select(cursor: Cursor, now: datetime) -> dict[str, datetime]:
    rows = cursor.execute(_ALL, (timestamp(now),))
    return {row["run_id"]: from_timestamp(row["until"]) for row in rows}
