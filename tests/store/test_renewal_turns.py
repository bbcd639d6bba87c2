"""The turns of daemons to renew a credential, which end by the database's clock."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.store._renewal_turns import TURN_SECONDS, SQLRenewalTurns
from aileron.testing import MemoryTurns, RenewalTurnsContract

from .case import DatabaseCase


class TurnTests(RenewalTurnsContract, DatabaseCase):
    def setUp(self) -> None:
        super().setUp()
        store = self.opened()
        self.one, self.other = (SQLRenewalTurns(store._writer, name) for name in ("one", "other"))

    def test_over(self) -> None:
        """A turn that was not ended is over by the database's clock, not before."""
        self.do(self.one.take("v/a"))
        ((left,),) = self.query("SELECT until FROM renewal_turns")
        self.query(f"UPDATE renewal_turns SET until = until - {TURN_SECONDS - 5}")
        self.assertIsNone(self.do(self.other.take("v/a")))
        self.query(f"UPDATE renewal_turns SET until = {left - TURN_SECONDS}")
        self.assertIsNotNone(self.do(self.other.take("v/a")))
        self.assertIsNone(self.do(self.one.take("v/a")))

    def test_stood_still(self) -> None:
        """A daemon that stood still for longer than its turn knows that without the database."""
        turn = self.do(self.one.take("v/a"))
        assert turn is not None
        self.assertFalse(evolve(turn, over_at=turn.over_at - TURN_SECONDS - 1).lasts())


class MemoryTurnTests(RenewalTurnsContract, SynchronousTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.one = MemoryTurns("one")
        self.other = self.one.of("other")
