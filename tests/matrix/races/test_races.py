"""Two at once: C{python -m tests.matrix races} tries every order, this one a dozen of the fewest switches."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from .orders import explore
from .table import races

_MOST, _SWITCHES = 12, 1


class RacesTests(SynchronousTestCase):
    """Whatever comes first, what was promised holds."""

    def test_each(self) -> None:
        """Of two that act at the same moment each is told what then is so."""
        broken = {race.name: explore(race, most=_MOST, switches=_SWITCHES).broken for race in races()}
        self.assertEqual({name: found for name, found in broken.items() if found}, {})
