"""Counts equal calls for several daemons, and stores what is stopped because of them. Times are the database's."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from aileron.model.call_counts import COUNTED_SECONDS, STOPPED_SECONDS, CallStop, CountLimit, Stopped

from ._audit import Seals
from ._connections import shielded
from ._dialect import Cursor
from ._writer import Writer

_EXPIRE = "DELETE FROM call_counts WHERE called_at <= {now} - ?"
_ADD = "INSERT INTO call_counts (session_id, digest, called_at) VALUES (?, ?, {now})"
_OF_SESSION = "SELECT count(*) FROM call_counts WHERE digest = ? AND session_id = ?"
_OF_ALL = "SELECT count(*) FROM call_counts WHERE digest = ?"
_FIND = "SELECT why, until - {now} FROM call_stops WHERE kind = ? AND name = ? AND until > {now}"
_STOP = """
    INSERT INTO call_stops (kind, name, why, until) VALUES (?, ?, ?, {now} + ?)
    ON CONFLICT (kind, name) DO UPDATE SET why = excluded.why, until = excluded.until
"""
_FORGET = "DELETE FROM call_stops WHERE until <= {now}"
_LIFT = "DELETE FROM call_stops WHERE kind = ? AND name = ?"


@frozen
class SQLCallCounts:
    """Stores C{call_counts} and C{call_stops}."""

    _writer: Writer
    _seals: Seals

    async def count(self, session_id: str, digest: str, limits: Sequence[CountLimit]) -> CallStop | None:
        """Count a call of a session, unless the session or the action is stopped already.

        If a limit is passed, stop its session or action and record its event, in the same transaction.

        :param digest: a digest of the action and the arguments.
        :param limits: a limit for the session and one for the action.
        :return: why the call is refused, or None if it is not.
        :raises StoreUnavailable: if it cannot be stored. Nothing was counted.
        """
        return await shielded(self._writer.write(_count, self._seals, session_id, digest, tuple(limits)))

    async def lift(self, session_id: str, action: str) -> None:
        """Accept calls of a session and of an action again. Idempotent.

        :raises StoreUnavailable: if it cannot be stored.
        """
        await shielded(self._writer.write(_lift, session_id, action))


def _count(cursor: Cursor, seals: Seals, session_id: str, digest: str, limits: Sequence[CountLimit]) -> CallStop | None:
    before = _find_stop(cursor, limits)
    if before is not None:
        return before
    now = cursor.dialect.now
    cursor.execute(_EXPIRE.format(now=now), (COUNTED_SECONDS,))
    cursor.execute(_ADD.format(now=now), (session_id, digest))
    for limit in limits:
        # guard of several daemons: equal calls of a session on all daemons count together
        #    -> store.test_call_counts.CountTests.test_session, instead number = 0
        number = _read_count(cursor, session_id, digest, limit)
        if number > limit.most:
            cursor.execute(_FORGET.format(now=now))
            cursor.execute(_STOP.format(now=now), (limit.stops.value, limit.name, limit.why, STOPPED_SECONDS))
            seals.append(cursor, [limit.event])
    return _find_stop(cursor, limits)


def _read_count(cursor: Cursor, session_id: str, digest: str, limit: CountLimit) -> int:
    if limit.stops is Stopped.SESSION:
        found = cursor.execute(_OF_SESSION, (digest, session_id)).fetchone()
    else:
        found = cursor.execute(_OF_ALL, (digest,)).fetchone()
    return int(found[0])


def _find_stop(cursor: Cursor, limits: Sequence[CountLimit]) -> CallStop | None:
    for limit in limits:
        statement = _FIND.format(now=cursor.dialect.now)
        found = cursor.execute(statement, (limit.stops.value, limit.name)).fetchone()
        if found is not None:
            return CallStop(limit.stops, found[0], float(found[1]))
    return None


def _lift(cursor: Cursor, session_id: str, action: str) -> None:
    for kind, name in ((Stopped.SESSION, session_id), (Stopped.ACTION, action)):
        cursor.execute(_LIFT, (kind.value, name))
