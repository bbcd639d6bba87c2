"""Two at once: C{python -m tests.matrix races} tries every order, this one those of the fewest switches."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from .orders import explore
from .table import races

_SWITCHES = 1


class RacesTests(SynchronousTestCase):
    """Whatever comes first, what was promised holds."""

    def test_each(self) -> None:
        """Of two that act at the same moment each is told what then is so."""
        broken = {race.name: explore(race, switches=_SWITCHES).broken for race in races()}
        self.assertEqual({name: found for name, found in broken.items() if found}, {})
