"""Lets one of several daemons at a time renew a credential. Turns end by the database's clock."""

from __future__ import annotations

from attrs import frozen

from ._connections import shielded
from ._daemons import count_seconds
from ._dialect import Cursor
from ._writer import Writer

TURN_SECONDS = 30.0
"""How long a turn lasts if it is not ended before. A request to a token endpoint takes at most 20 seconds."""

_TAKE = """
    INSERT INTO renewal_turns (credential, holder, until) VALUES (?, ?, {now} + ?)
    ON CONFLICT (credential) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE renewal_turns.until <= {now} OR renewal_turns.holder = excluded.holder
"""
_END = "DELETE FROM renewal_turns WHERE credential = ? AND holder = ?"


@frozen
class SQLRenewalTurn:
    """A turn of this daemon, which no other daemon has before it is ended or over.

    :ivar over_at: when it may be over, by L{count_seconds}.
    """

    _writer: Writer
    _credential: str
    _holder: str
    over_at: float

    def lasts(self) -> bool:
        """Return whether the turn cannot be over yet. It may be if this process was suspended."""
        return count_seconds() < self.over_at

    async def end(self) -> None:
        """End the turn, so that another daemon may have it at once. Idempotent.

        :raises StoreUnavailable: if that cannot be stored. The turn then ends by itself.
        """
        await shielded(self._writer.write(_end, self._credential, self._holder))


@frozen
class SQLRenewalTurns:
    """Stores C{renewal_turns}: which daemon renews a credential, and until when.

    :param holder: the name of this daemon, unique among those that share the database.
    """

    _writer: Writer
    _holder: str

    async def take(self, credential: str) -> SQLRenewalTurn | None:
        """Return the turn to renew a credential, or None if another daemon has it.

        :param credential: a name that is unique in the database.
        :raises StoreUnavailable: if it cannot be stored.
        """
        asked = count_seconds()
        if not await shielded(self._writer.write(_take, credential, self._holder)):
            return None
        return SQLRenewalTurn(self._writer, credential, self._holder, asked + TURN_SECONDS)


def _take(cursor: Cursor, credential: str, holder: str) -> bool:
    statement = _TAKE.format(now=cursor.dialect.now)
    # guard of several daemons: one daemon at a time renews a credential
    #    -> store.test_renewal_turns.TurnTests.test_one, instead return True
    return cursor.execute(statement, (credential, holder, TURN_SECONDS)).rowcount == 1


def _end(cursor: Cursor, credential: str, holder: str) -> None:
    cursor.execute(_END, (credential, holder))
