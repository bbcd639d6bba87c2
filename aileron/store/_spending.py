"""Stores in the database what requests to language models used, for limits on spending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from attrs import astuple, define, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.usage import HeldUse, LimitKey, SharedUse, SpendKey, Spent

from ._audit import Seals
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._writer import Writer

WRITE_SECONDS = 1.0
KEPT_DAYS = 92
"""How many days are kept. Older rows are deleted unless their session is still active."""

_ADD = """
    INSERT INTO spending (day, session_id, provider, model,
                          requests, input, output, cached, microdollars, estimated, unpriced)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (day, session_id, provider, model) DO UPDATE SET
        requests = spending.requests + excluded.requests, input = spending.input + excluded.input,
        output = spending.output + excluded.output, cached = spending.cached + excluded.cached,
        microdollars = spending.microdollars + excluded.microdollars,
        estimated = spending.estimated + excluded.estimated, unpriced = spending.unpriced + excluded.unpriced
"""
_NEWEST = "SELECT max(day) FROM spending WHERE day <= ?"
_PRUNE = """
    DELETE FROM spending WHERE day < ?
    AND session_id NOT IN (SELECT id FROM sessions WHERE ended_at IS NULL)
"""
_ALL = """
    SELECT day, session_id, provider, model, requests, input, output, cached, microdollars, estimated, unpriced
    FROM spending WHERE day >= ?
"""
_HELD_SECONDS = 10.0
"""How long reservations count of a daemon that does not renew them."""

_FORGET = "DELETE FROM spending_held WHERE daemon = ? OR until <= {now}"
_HOLD = "INSERT INTO spending_held (daemon, limit_id, place, amount, until) VALUES (?, ?, ?, ?, {now} + ?)"
_HELD = (
    "SELECT limit_id, place, CAST(sum(amount) AS bigint) FROM spending_held WHERE daemon <> ? GROUP BY limit_id, place"
)
_RECORD = """
    INSERT INTO spending_told (type, limit_id, place, most, at) VALUES (?, ?, ?, ?, {now})
    ON CONFLICT (type, limit_id, place, most) DO NOTHING
"""
_FORGET_TOLD = "DELETE FROM spending_told WHERE at < {now} - ?"
_DAEMONS = "SELECT count(*) FROM daemons WHERE until > {now}"

_log = Logger()


@define(eq=False)
class SQLSpending:
    """Stores C{spending}: what requests used by local day, session, provider and model, and C{spending_told}.

    What L{note} records is written together: within a second, before it is read, and when the store is closed.

    :param daemon: the name of this daemon, unique among those that share the database.
    """

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _daemon: str
    _seals: Seals
    _noted: dict[SpendKey, Spent] = field(factory=dict, init=False)

    def note(self, key: SpendKey, spent: Spent) -> None:
        """Record in memory what requests used."""
        if not self._noted:
            self._clock.callLater(WRITE_SECONDS, self.flush)
        before = self._noted.get(key)
        self._noted[key] = spent if before is None else before + spent

    async def since(self, day: date) -> Mapping[SpendKey, Spent]:
        """Return what was used on C{day} and later.

        :raises StoreUnavailable: if the database cannot be read.
        """
        await shielded(self.flush())
        return await self._readers.read(_select, day.isoformat())

    async def share(self, held: HeldUse, day: date) -> SharedUse:
        """Write what was recorded and what requests in progress reserve, and read both of all daemons.

        :param held: what those at this daemon reserve.
        :param day: the day from which on totals are read.
        :raises StoreUnavailable: if the database cannot be used.
        """
        flushed = self.flush()
        found = await shielded(self._writer.write(_share, self._daemon, dict(held), day.isoformat()))
        await shielded(flushed)
        return found

    async def record_once(self, event: Event, state: LimitKey) -> bool:
        """Store an event, and return True, unless one of its type is stored for this state of a limit.

        :raises StoreUnavailable: if it cannot be stored.
        """
        return await shielded(self._writer.write(_record_once, self._seals, event, state))

    async def prune(self, today: date) -> None:
        """Delete rows older than L{KEPT_DAYS}, unless their session is still active.

        :raises StoreUnavailable: if the database cannot be written.
        """
        await shielded(self._writer.write(_prune, today.isoformat()))

    def flush(self) -> Deferred[None]:
        """Write what was recorded. If the database fails, it is written at the next flush."""
        noted, self._noted = self._noted, {}
        if not noted:
            return succeed(None)
        rows = [
            (key.day.isoformat(), key.session_id, key.provider, key.model, *astuple(spent))
            for key, spent in noted.items()
        ]
        return self._writer.write(_add, rows).addErrback(self._keep, noted)

    def _keep(self, failure: Failure, noted: Mapping[SpendKey, Spent]) -> None:
        failure.trap(StoreUnavailable)  # none of it was written
        for key, spent in noted.items():
            self.note(key, spent)
        _log.warn("what LLM requests used is not written yet")


def _add(cursor: Cursor, rows: Sequence[tuple[object, ...]]) -> None:
    cursor.executemany(_ADD, rows)


def _prune(cursor: Cursor, today: str) -> None:
    newest = cursor.execute(_NEWEST, (today,)).fetchone()[0]
    if newest is not None:
        cursor.execute(_PRUNE, ((date.fromisoformat(newest) - timedelta(days=KEPT_DAYS)).isoformat(),))
    cursor.execute(_FORGET_TOLD.format(now=cursor.dialect.now), (KEPT_DAYS * 86400,))


def _record_once(cursor: Cursor, seals: Seals, event: Event, state: LimitKey) -> bool:
    told = cursor.execute(_RECORD.format(now=cursor.dialect.now), (event.type, *astuple(state)))
    # guard of several daemons: one of them records what the operator is told of a limit
    #    -> store.test_spending.SpendingTests.test_recorded_once
    if told.rowcount != 1:
        return False
    seals.append(cursor, [event])
    return True


def _share(cursor: Cursor, daemon: str, held: HeldUse, day: str) -> SharedUse:
    now = cursor.dialect.now
    cursor.execute(_FORGET.format(now=now), (daemon,))
    for (limit_id, place), amount in held.items():
        cursor.execute(_HOLD.format(now=now), (daemon, limit_id, place, amount, _HELD_SECONDS))
    others = {(row[0], row[1]): int(row[2]) for row in cursor.execute(_HELD, (daemon,))}
    number = int(cursor.execute(_DAEMONS.format(now=now)).fetchone()[0])
    return SharedUse(_select(cursor, day), others, max(1, number))


def _select(cursor: Cursor, day: str) -> dict[SpendKey, Spent]:
    return {
        SpendKey(date.fromisoformat(row[0]), row[1], row[2], row[3]): Spent(*row[4:])
        for row in cursor.execute(_ALL, (day,))
    }
