"""The contract of turns to renew credentials, and turns in memory."""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen

from aileron.model.errors import StoreUnavailable

from ._case import StoreCase


@define(eq=False)
class MemoryTurns:
    """Turns of several daemons in memory.

    :ivar holders: the daemon that has the turn, by credential.
    :ivar away: whether the database refuses.
    :ivar is_over: whether turns that were given may be over.
    """

    holder: str = "one"
    holders: dict[str, str] = field(factory=dict)
    away: bool = False
    is_over: bool = False

    def of(self, holder: str) -> MemoryTurns:
        """Return the turns of another daemon on the same database."""
        return MemoryTurns(holder, self.holders)

    async def take(self, credential: str) -> _MemoryTurn | None:
        if self.away:
            raise StoreUnavailable("away")
        if self.holders.setdefault(credential, self.holder) != self.holder:
            return None
        return _MemoryTurn(self, credential)


@frozen
class _MemoryTurn:
    turns: MemoryTurns
    credential: str

    def lasts(self) -> bool:
        return not self.turns.is_over

    async def end(self) -> None:
        if self.turns.away:
            raise StoreUnavailable("away")
        holders = self.turns.holders
        if holders.get(self.credential) == self.turns.holder:
            del holders[self.credential]


class RenewalTurnsContract(StoreCase):
    """Tests of turns to renew credentials, with two daemons on one database."""

    one: Any
    other: Any

    def test_one(self) -> None:
        """One daemon at a time has the turn of a credential, and of other credentials others."""
        turn = self.do(self.one.take("v/a"))
        self.assertTrue(turn.lasts())
        self.assertIsNone(self.do(self.other.take("v/a")))
        self.assertIsNotNone(self.do(self.other.take("v/b")))
        self.assertIsNotNone(self.do(self.one.take("v/a")))

    def test_ended(self) -> None:
        """Another daemon has the turn once it has ended. Ending it twice ends no turn of another daemon."""
        turn = self.do(self.one.take("v/a"))
        self.do(turn.end())
        self.assertIsNotNone(self.do(self.other.take("v/a")))
        self.do(turn.end())
        self.assertIsNone(self.do(self.one.take("v/a")))
