"""Stores until when services asked for no further requests, for several daemons. Times are the database's."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.model.rate_limits import MOST_HELD_SECONDS, RateLimit

from ._connections import Readers, shielded
from ._dialect import Cursor
from ._writer import Writer

_EXPIRE = "DELETE FROM rate_limits WHERE until <= {now} OR until > {now} + ?"
_PUT = """
    INSERT INTO rate_limits (connector, credential, of_preview, until) VALUES (?, ?, ?, {now} + ?)
    ON CONFLICT (connector, credential, of_preview) DO UPDATE SET until = excluded.until
    WHERE rate_limits.until < excluded.until AND excluded.of_preview = 0
"""
_ALL = "SELECT connector, credential, of_preview, until - {now} FROM rate_limits WHERE until > {now}"


@frozen
class SQLRateLimits:
    """Stores C{rate_limits}. A limit lasts at most an hour."""

    _writer: Writer
    _readers: Readers

    async def note(self, limit: RateLimit, seconds: float) -> None:
        """Store a limit that lasts C{seconds} from now. A limit never becomes shorter.

        One that a preview set is not extended by another preview.

        :raises StoreUnavailable: if it cannot be stored.
        """
        await shielded(self._writer.write(_put, limit, min(seconds, MOST_HELD_SECONDS)))

    async def all(self) -> Mapping[RateLimit, float]:
        """Return the limits that apply now, each with the seconds that are left of it.

        :raises StoreUnavailable: if they cannot be read.
        """
        return await self._readers.read(_select)


def _put(cursor: Cursor, limit: RateLimit, seconds: float) -> None:
    now, (connector, credential) = cursor.dialect.now, limit.account
    cursor.execute(_EXPIRE.format(now=now), (MOST_HELD_SECONDS,))
    cursor.execute(_PUT.format(now=now), (connector, credential or "", int(limit.of_preview), seconds))


def _select(cursor: Cursor) -> dict[RateLimit, float]:
    rows = cursor.execute(_ALL.format(now=cursor.dialect.now))
    found = {RateLimit((row[0], row[1] or None), bool(row[2])): float(row[3]) for row in rows}
    return {limit: left for limit, left in found.items() if left <= MOST_HELD_SECONDS}
