"""Orders of two: each piece of the database's work is done when the order says, and not before.

Between two such pieces nothing else can come, so these orders are all that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from heapq import heappop, heappush
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from aileron.model.errors import AileronError
from tests.promises.case import PromiseCase

_STEP_SECONDS = 0.001
_ANY = 1_000_000
Act = Callable[[], Coroutine[Deferred[Any], Any, Any]]


class Home(PromiseCase):
    """A fresh home for one order."""

    def runTest(self) -> None:
        """Not a test by itself."""


@frozen
class Race:
    """Two who act at once.

    :ivar holds: what must hold, in words.
    :ivar begin: prepares a home, and returns what the two do.
    :ivar check: given the home and what each was told (L{None}: refused), says what does not hold.
    :ivar home: where they act.
    """

    name: str
    holds: str
    begin: Callable[[Home], tuple[Act, Act]]
    check: Callable[[Home, list[Any]], str | None]
    home: type[Home] = Home


@frozen(order=True)
class Fork:
    """Where another order parts from one that was tried.

    :ivar switches: how often whoever was at it had to wait for another, by then.
    :ivar made: the choices up to there.
    """

    switches: int
    made: tuple[int, ...]


@define
class Order:
    """Which piece is done next, each time that there is more than one: as told, and then whoever is at it goes on.

    :ivar made: the choices.
    :ivar forks: what else could have been chosen, beyond what was told.
    """

    told: tuple[int, ...] = ()
    made: list[int] = field(factory=list)
    forks: list[Fork] = field(factory=list)
    _switches: int = 0

    def choose(self, among: int, going_on: Collection[int]) -> int:
        """The next choice.

        :param going_on: those among which are what the last piece led to.
        """
        usual = min(going_on, default=0)
        if len(self.made) < len(self.told):
            choice = self.told[len(self.made)]
        else:
            choice = usual
            others = (each for each in range(among) if each != usual)
            self.forks += [Fork(self._costs(each, going_on), (*self.made, each)) for each in others]
        self._switches = self._costs(choice, going_on)
        self.made.append(choice)
        return choice

    def _costs(self, choice: int, going_on: Collection[int]) -> int:
        return self._switches + bool(going_on and choice not in going_on)


@define
class Explored:
    """The orders of one race that were tried, each once, those of few switches first.

    :ivar broken: of those in which something did not hold, the choices, and what.
    :ivar within: all orders of at most so many switches were tried; L{None}: all that there are.
    """

    tried: int = 0
    broken: list[tuple[tuple[int, ...], str]] = field(factory=list)
    within: int | None = None


def explore(race: Race, most: int = _ANY, switches: int = _ANY) -> Explored:
    """Try each order of a race, up to so many, and up to so many switches."""
    explored, forks = Explored(), [Fork(0, ())]
    while forks and explored.tried < most and forks[0].switches <= switches:
        order = Order(heappop(forks).made)
        why = _one(race, order)
        explored.tried += 1
        if why is not None:
            explored.broken.append((tuple(order.made), why))
        for fork in order.forks:
            heappush(forks, fork)
    explored.within = forks[0].switches - 1 if forks else None
    return explored


def _one(race: Race, order: Order) -> str | None:
    home = race.home()
    home.setUp()
    try:
        first, second = race.begin(home)
        home.pool.hold()
        todo, told, going_on = home.pool.todo, [_started(home, first)], range(0)
        while todo or len(told) < 2:
            choice = order.choose(len(todo) + (len(told) < 2), going_on)
            others = len(todo) - (choice < len(todo))
            if choice == len(todo):
                told.append(_started(home, second))
            else:
                _step(home, choice)
            going_on = range(others, len(todo))
            home.clock.advance(_STEP_SECONDS)  # who looks later looks at a later time
        home.pool.release()
        return race.check(home, [_answer(each) for each in told])
    finally:
        home.doCleanups()


def _step(home: Home, which: int) -> None:
    """Do this piece of those that wait."""
    todo = home.pool.todo
    piece = todo[which]
    del todo[which]
    todo.appendleft(piece)
    home.pool.step()


def _started(home: Home, act: Act) -> list[Any]:
    told: list[Any] = []
    home.later(act()).addBoth(told.append)
    return told


def _answer(told: list[Any]) -> Any:
    """What somebody was told; L{None}, if it was a refusal."""
    (answer,) = told
    if isinstance(answer, Failure):
        answer.trap(AileronError)
        return None
    return answer
