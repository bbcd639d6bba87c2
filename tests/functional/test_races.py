"""Two at once at two daemons on one database: C{python -m tests.matrix races} tries more orders."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.extent import seldom
from tests.functional.postgresql import start_server
from tests.matrix.races.orders import explore
from tests.matrix.races.several import races_of_two
from tests.matrix.races.table import races

_MOST = 3


class RacesTests(SynchronousTestCase):
    """Whatever comes first, what was promised holds, though neither daemon has heard of the other."""

    @seldom
    def test_each(self) -> None:
        """The first orders of each race."""
        start_server()
        broken = {race.name: explore(race, most=_MOST).broken for race in races_of_two(races())}
        self.assertEqual({name: found for name, found in broken.items() if found}, {})
