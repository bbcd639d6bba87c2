"""Two at once: C{python -m tests.matrix races} tries every order, this one those of the fewest switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from .orders import Act, Home, Race, explore
from .table import races

_SWITCHES = 1


class RacesTests(SynchronousTestCase):
    """Whatever comes first, what was promised holds."""

    def test_each(self) -> None:
        """Of two that act at the same moment each is told what then is so."""
        broken = {race.name: explore(race, switches=_SWITCHES).broken for race in races()}
        self.assertEqual({name: found for name, found in broken.items() if found}, {})


class OrdersTests(SynchronousTestCase):
    """All orders of two, each once."""

    def race(self, check: Callable[[Home, list[Any]], str | None]) -> tuple[Race, list[str]]:
        """Two who read two and three times, and where their reads are noted."""
        seen: list[str] = []

        def reader(name: str, times: int, home: Home) -> Act:
            async def read() -> None:
                for _ in range(times):
                    await home.store.watermarks.all()
                    seen.append(name)

            return read

        def begin(home: Home) -> tuple[Act, Act]:
            return reader("a", 2, home), reader("b", 3, home)

        return Race("reads", "", begin, check), seen

    def test_whole(self) -> None:
        """Every way in which the steps of two can follow each other is tried, and none twice."""
        race, seen = self.race(lambda home, told: None)
        explored = explore(race)
        found = ["".join(seen[at : at + 5]) for at in range(0, len(seen), 5)]
        self.assertEqual((explored.within, explored.tried), (None, len(found)))
        self.assertEqual(set(found), {*_mixed("aa", "bbb")})

    def test_bounded(self) -> None:
        """Within a bound those of fewer switches come first, and it is said how far that went."""
        race, _ = self.race(lambda home, told: None)
        explored = explore(race, switches=0)
        self.assertEqual(explored.within, 0)
        self.assertLess(explored.tried, explore(race, switches=1).tried)
        self.assertEqual(explore(race, most=explored.tried + 1).within, 0)

    def test_broken(self) -> None:
        """What does not hold in one order alone is found, with the choices that lead there."""
        race, seen = self.race(lambda home, told: "mixed" if seen[-5:] == [*"babab"] else None)
        broken = explore(race).broken
        self.assertTrue(broken)
        self.assertEqual({why for _, why in broken}, {"mixed"})
        self.assertLess(len(broken), len(_mixed("aa", "bbb")))


def _mixed(one: str, other: str) -> list[str]:
    if not one or not other:
        return [one + other]
    return [one[0] + each for each in _mixed(one[1:], other)] + [other[0] + each for each in _mixed(one, other[1:])]
