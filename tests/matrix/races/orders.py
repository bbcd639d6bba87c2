"""Orders of two: each piece of the database's work is done when the order says, and not before."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from aileron.errors import AileronError
from tests.promises.case import PromiseCase

_STEP_SECONDS = 0.001
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
    """

    name: str
    holds: str
    begin: Callable[[Home], tuple[Act, Act]]
    check: Callable[[Home, list[Any]], str | None]


@define
class Order:
    """Which is done next, each time that there is more than one: left to chance, and remembered.

    :ivar made: the choices.
    """

    chance: random.Random
    made: list[int] = field(factory=list)

    def choose(self, among: int) -> int:
        """The next choice."""
        self.made.append(self.chance.randrange(among))
        return self.made[-1]


def orders(race: Race, tries: int, seed: int = 1) -> Iterator[tuple[tuple[int, ...], str | None]]:
    """Each order of a race that chance brought in so many tries, once, and what did not hold in it."""
    chance, seen = random.Random(seed), set[tuple[int, ...]]()
    for _ in range(tries):
        order = Order(chance)
        broken = _one(race, order)
        made = tuple(order.made)
        if made not in seen:
            seen.add(made)
            yield made, broken


def _one(race: Race, order: Order) -> str | None:
    home = Home()
    home.setUp()
    try:
        first, second = race.begin(home)
        home.pool.hold()
        told = [_started(home, first)]
        while home.pool.todo or len(told) < 2:
            choice = order.choose(len(home.pool.todo) + (len(told) < 2))
            if choice == len(home.pool.todo):
                told.append(_started(home, second))
            else:
                home.pool.todo.rotate(-choice)
                home.pool.step()
            home.clock.advance(_STEP_SECONDS)  # who looks later looks at a later time
        home.pool.release()
        return race.check(home, [_answer(each) for each in told])
    finally:
        home.doCleanups()


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
