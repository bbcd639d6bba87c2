"""Limits a site: how many connections it holds, who keeps a place among them, and whose request is begun next."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from twisted.internet.interfaces import IReactorTime

MOST_CONNECTIONS = 256
"""Of a site that is told no other number."""

MOST_UNPROVEN_BYTES = 16 * 1024 * 1024
"""The bytes of unanswered requests that a site holds in total for connections that have proved nothing."""

MOST_PROVEN_BYTES = 64 * 1024 * 1024
"""The same for those whose places are kept, with what they have not read of their answers."""

MOST_IN_A_TURN = 32
"""So many come in at most in a turn of the reactor."""

_ROUNDS = 8
"""For how many rounds of accepting a connection that has proved nothing stays at least, while the site is full."""

_STAY_SECONDS = 0.2
"""For how long, also where the rounds follow each other faster than a client gets the processor."""


class TrackedConnection(Protocol):
    """A connection, as far as its place is concerned."""

    @property
    def at_rest(self) -> bool:
        """True where it waits for no answer of ours."""

    def drop(self) -> None:
        """Close it at once; L{ConnectionLimiter.leave} follows."""


class ConnectionLimiter:
    """Limits the connections of a site, and keeps places for those that have proved who they are.

    A connection that has proved nothing gives way to a new one, whatever it does: the oldest goes first.  So nobody can
    take all places without a credential.  While the site is full, few are let in at a time, so that each has time to
    prove itself.  Three quarters of the places can be kept.  The owners of the credentials share them: an owner
    with more than another gives up the difference.

    What is held for them is bounded too.  Beyond the bound the connection gives way that holds most; of those whose
    places are kept, one of the owner that holds most.

    :param most_bytes: held for those that have proved nothing.
    :param most_proven_bytes: held for the others.
    :ivar closed: nobody comes in any more, and a connection ends with its answer.
    """

    def __init__(
        self,
        most: int = MOST_CONNECTIONS,
        most_bytes: int = MOST_UNPROVEN_BYTES,
        most_proven_bytes: int = MOST_PROVEN_BYTES,
    ) -> None:
        self._most, self._most_bytes, self._most_proven_bytes = most, most_bytes, most_proven_bytes
        self._most_kept = most - max(1, most // 4)
        self._unproven: dict[TrackedConnection, int] = {}  # how many bytes each holds
        self._bytes = self._proven_bytes = 0
        self._owners: dict[TrackedConnection, str] = {}
        self._kept: defaultdict[str, dict[TrackedConnection, int]] = defaultdict(dict)  # likewise
        self.closed = False

    def __len__(self) -> int:
        """Count them."""
        return len(self._unproven) + len(self._owners)

    @property
    def most_in_a_turn(self) -> int:
        """The most connections that may come in in a turn of the reactor."""
        if len(self) < self._most:
            return MOST_IN_A_TURN
        return max(1, min(MOST_IN_A_TURN, len(self._unproven) // _ROUNDS))

    @property
    def pause_seconds(self) -> float:
        """The seconds for which nobody is to come in after those of a turn."""
        return 0.0 if len(self) < self._most else _STAY_SECONDS / _ROUNDS

    def enter(self, connection: TrackedConnection) -> bool:
        """Let C{connection} in, in the place of the oldest that has proved nothing if all are taken.

        :return: whether there was room.
        """
        if self.closed:
            return False
        if len(self) >= self._most:
            self._drop(next(iter(self._unproven)))  # there is one: not all places can be kept
        self._unproven[connection] = 0
        return True

    def keep(self, connection: TrackedConnection, owner: str) -> None:
        """Keep the place of C{connection}, which has proved that it is C{owner}'s, as far as the owner's share goes.

        One that is not inside is not let in by this.
        """
        if self._owners.get(connection) == owner or not (connection in self._unproven or connection in self._owners):
            return
        if not self._has_room_for(owner) or not (connection in self._unproven or connection in self._owners):
            return  # or it held most when another gave up its place
        held = self.leave(connection)
        self._owners[connection] = owner
        self._kept[owner][connection] = 0
        self.count(connection, held)

    def give_up(self, connection: TrackedConnection) -> None:
        """Keep the place of C{connection} no longer: it has proved nothing."""
        if connection in self._owners:
            held = self.leave(connection)
            self._unproven[connection] = 0
            self.count(connection, held)

    def forget(self, owner: str) -> None:
        """Keep no place for C{owner}, whose credential opens nothing any more."""
        for connection in [*self._kept.get(owner, ())]:
            self.give_up(connection)

    def count(self, connection: TrackedConnection, held: int) -> None:
        """Note how many bytes are held for C{connection}; the largest holder gives way where it is too much."""
        owner = self._owners.get(connection)
        if owner is not None:
            self._proven_bytes += held - self._kept[owner][connection]
            self._kept[owner][connection] = held
            while self._proven_bytes > self._most_proven_bytes:
                self._drop(_holds_most(max(self._kept.values(), key=lambda each: sum(each.values()))))
        elif connection in self._unproven:
            self._bytes += held - self._unproven[connection]
            self._unproven[connection] = held
            while self._bytes > self._most_bytes:
                self._drop(_holds_most(self._unproven))

    def owner(self, connection: TrackedConnection) -> str | None:
        """Whose place C{connection} has; L{None}: none is kept for it."""
        return self._owners.get(connection)

    def rested(self, connection: TrackedConnection) -> None:
        """C{connection} has got an answer and rests from now on."""
        owner = self._owners.get(connection)
        if owner is not None:
            self._kept[owner][connection] = self._kept[owner].pop(connection)

    def close(self) -> None:
        """Let go of everybody who rests, and of the others once they are answered.  Twice is safe."""
        self.closed = True
        for connection in [*self._unproven, *self._owners]:
            if connection.at_rest:
                self._drop(connection)

    def leave(self, connection: TrackedConnection) -> int:
        """C{connection} is gone.  Twice is safe.

        :return: how many bytes were held for it.
        """
        owner = self._owners.pop(connection, None)
        if owner is None:
            held = self._unproven.pop(connection, 0)
            self._bytes -= held
            return held
        held = self._kept[owner].pop(connection)
        self._proven_bytes -= held
        if not self._kept[owner]:
            del self._kept[owner]
        return held

    def _has_room_for(self, owner: str) -> bool:
        """Tell whether one more may be kept for C{owner}.

        The one who has most gives one up for it, unless that is fair.
        """
        if len(self._owners) < self._most_kept:
            return True
        most = max(self._kept.values(), key=len)
        if len(most) <= len(self._kept.get(owner, ())) + 1:
            return False
        self.give_up(_least_used(most))
        return True

    def _drop(self, connection: TrackedConnection) -> None:
        self.leave(connection)
        connection.drop()


def _least_used(connections: Iterable[TrackedConnection]) -> TrackedConnection:
    """Choose the one that has rested longest; where none rests, that was used least recently."""
    ordered = list(connections)
    return next((connection for connection in ordered if connection.at_rest), ordered[0])


def _holds_most(connections: Mapping[TrackedConnection, int]) -> TrackedConnection:
    return max(connections, key=connections.__getitem__)


MOST_BEGUN_IN_A_TURN = 16
"""So many requests are begun at most in a turn of the reactor, first requests of connections not counted."""


class QueuedConnection(Protocol):
    """A connection whose next request waits."""

    def take_turn(self) -> None:
        """Begin it.  It may wait again."""


class RequestTurns:
    """Spreads the requests of a site over the turns of the reactor.

    Where some have to wait, the owners of their connections take turns: one with many connections is served no more
    often than one with a single connection.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._begun = 0  # in this turn
        self._scheduled = False
        self._queues: OrderedDict[str | None, OrderedDict[QueuedConnection, None]] = OrderedDict()  # by owner
        self._owners: dict[QueuedConnection, str | None] = {}

    def begin(self) -> bool:
        """Count a request that is to begin now.

        :return: whether it may, in this turn.
        """
        if self._begun >= MOST_BEGUN_IN_A_TURN:
            return False
        self._begun += 1
        self._schedule()
        return True

    def wait(self, connection: QueuedConnection, owner: str | None) -> None:
        """Have C{connection} take its turn in a later turn of the reactor.  Twice is safe.

        :param owner: to whom it belongs; L{None}: it has proved nothing.
        """
        if connection not in self._owners:
            self._owners[connection] = owner
            self._queues.setdefault(owner, OrderedDict())[connection] = None
            self._schedule()

    def leave(self, connection: QueuedConnection) -> None:
        """C{connection} waits no more.  Twice is safe."""
        if connection in self._owners:
            owner = self._owners.pop(connection)
            del self._queues[owner][connection]
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

    def _next(self) -> QueuedConnection:
        owner, queue = next(iter(self._queues.items()))
        self._queues.move_to_end(owner)
        connection = next(iter(queue))
        self.leave(connection)
        return connection
