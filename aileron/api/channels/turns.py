"""Whose request is begun next, where more are sent than a turn of the reactor should take."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from twisted.internet.interfaces import IReactorTime

MOST_BEGUN_IN_A_TURN = 16
"""So many requests are begun at most in a turn of the reactor, first requests of connections not counted."""


class Waits(Protocol):
    """A connection whose next request waits."""

    def take_turn(self) -> None:
        """Begin it.  It may wait again."""


class RequestTurns:
    """Spreads the requests of a site over the turns of the reactor.

    Where some have to wait, the owners of their connections take turns: who has many connections is served no more
    often than who has one.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._begun = 0  # in this turn
        self._scheduled = False
        self._queues: OrderedDict[str | None, OrderedDict[Waits, None]] = OrderedDict()  # by owner
        self._owners: dict[Waits, str | None] = {}

    def begin(self) -> bool:
        """Count a request that is to begin now.

        :return: whether it may, in this turn.
        """
        if self._begun >= MOST_BEGUN_IN_A_TURN:
            return False
        self._begun += 1
        self._schedule()
        return True

    def wait(self, guest: Waits, owner: str | None) -> None:
        """Have C{guest} take its turn in a later turn of the reactor.  Twice is safe.

        :param owner: to whom it belongs; L{None}: it has proved nothing.
        """
        if guest not in self._owners:
            self._owners[guest] = owner
            self._queues.setdefault(owner, OrderedDict())[guest] = None
            self._schedule()

    def leave(self, guest: Waits) -> None:
        """C{guest} waits no more.  Twice is safe."""
        if guest in self._owners:
            owner = self._owners.pop(guest)
            del self._queues[owner][guest]
            if not self._queues[owner]:
                del self._queues[owner]

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._reactor.callLater(0, self._take)

    def _take(self) -> None:
        """Give turns to those that wait, one of each owner's after another."""
        self._scheduled, self._begun = False, 0
        try:
            for _ in range(min(MOST_BEGUN_IN_A_TURN, len(self._owners))):
                if self._owners:  # one's turn may end another
                    self._next().take_turn()
        finally:
            if self._owners:
                self._schedule()

    def _next(self) -> Waits:
        owner, queue = next(iter(self._queues.items()))
        self._queues.move_to_end(owner)
        guest = next(iter(queue))
        self.leave(guest)
        return guest
