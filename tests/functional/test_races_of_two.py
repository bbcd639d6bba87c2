"""Races of two daemons on one database: C{python -m tests.matrix races} tries many orders of each, these few."""

from __future__ import annotations

import unittest

from twisted.trial.unittest import SynchronousTestCase

from tests.extent import place_among, seldom
from tests.functional.install import database
from tests.matrix.races.orders import Race, explore
from tests.matrix.races.several import races_of_two
from tests.matrix.races.table import races

_MOST, _FEW = 6, 2


@unittest.skipIf(database() is None, "PostgreSQL is not installed")
class RacesOfTwoTests(SynchronousTestCase):
    """Two act at once, at two daemons, and what was promised holds."""

    def try_races(self, of: tuple[Race, ...], most: int) -> None:
        broken = {race.name: explore(race, most=most).broken for race in of}
        self.assertEqual({name: found for name, found in broken.items() if found}, {})

    def test_one(self) -> None:
        """One race, another one in each run, in the usual orders."""
        found = races_of_two(races())
        self.try_races((found[place_among(self.id(), len(found))],), _FEW)

    @seldom
    def test_each(self) -> None:
        """Each race, in some orders."""
        self.try_races(races_of_two(races()), _MOST)
