"""Two at once, in a few orders: C{python -m tests.matrix races} tries more."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from .orders import orders
from .table import races

_TRIES = 15


class RacesTests(SynchronousTestCase):
    """Whatever comes first, what was promised holds."""

    def test_each(self) -> None:
        """Of two that act on one run at the same moment each is told what then is so."""
        broken = [f"{race.name} {order}: {why}" for race in races() for order, why in orders(race, _TRIES) if why]
        self.assertEqual(broken, [])
