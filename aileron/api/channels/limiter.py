"""Limits a site's connections: how many it holds, which ones keep their places, and whose request starts next."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from twisted.internet.interfaces import IReactorTime

MOST_CONNECTIONS = 256
"""The most connections of a site, unless set otherwise."""

MOST_UNPROVEN_BYTES = 16 * 1024 * 1024
"""The bytes of unanswered requests that a site holds in total for connections that have proved nothing."""

MOST_PROVEN_BYTES = 64 * 1024 * 1024
"""The most bytes held in total for connections with kept places, including unread answers."""

MOST_IN_A_TURN = 32
"""The most connections accepted in one turn of the reactor."""

_ROUNDS = 8
"""The number of accept rounds for which an unproven connection stays at least while the site is full."""

_STAY_SECONDS = 0.2
"""The least stay in seconds, for when rounds follow each other faster than a client is scheduled."""


class TrackedConnection(Protocol):
    """A client's connection, with the members that L{ConnectionLimiter} uses."""

    @property
    def at_rest(self) -> bool:
        """Return True if the connection waits for no response."""

    def drop(self) -> None:
        """Close the connection at once. It then calls L{ConnectionLimiter.leave}."""


class ConnectionLimiter:
    """A limiter of a site's connections. It keeps places for connections that have proved their owner.

    A connection without proof gives way to a new one, the oldest first. So without a credential no client can
    take all places.  While the site is full, few connections are accepted at a time, so that each has time to
    prove its owner. Three quarters of the places can be kept. The owners share them evenly: an owner
    with more than another gives up places.

    The bytes held are limited too. Above the limit, the connection that holds most is closed. Among kept
    places, it is a connection of the owner that holds most.

    :param most_bytes: the most bytes held for unproven connections.
    :param most_proven_bytes: the most bytes held for the others.
    :ivar closed: True if no connection is accepted any more, and each is closed after its answer.
    """

    def __init__(
        self,
        most: int = MOST_CONNECTIONS,
        most_bytes: int = MOST_UNPROVEN_BYTES,
        most_proven_bytes: int = MOST_PROVEN_BYTES,
    ) -> None:
        self._most, self._most_bytes, self._most_proven_bytes = most, most_bytes, most_proven_bytes
        self._most_kept = most - max(1, most // 4)
        self._unproven: dict[TrackedConnection, int] = {}  # the bytes held for each
        self._bytes = self._proven_bytes = 0
        self._owners: dict[TrackedConnection, str] = {}
        self._kept: defaultdict[str, dict[TrackedConnection, int]] = defaultdict(dict)  # the bytes held for each owner
        self.closed = False

    def __len__(self) -> int:
        """Return the number of connections that the site has now."""
        return len(self._unproven) + len(self._owners)

    @property
    def connections(self) -> tuple[TrackedConnection, ...]:
        """The connections that the site has now."""
        return (*self._unproven, *self._owners)

    @property
    def most_in_a_turn(self) -> int:
        """The most new connections that the site accepts before the reactor handles other events."""
        if len(self) < self._most:
            return MOST_IN_A_TURN
        return max(1, min(MOST_IN_A_TURN, len(self._unproven) // _ROUNDS))

    @property
    def pause_seconds(self) -> float:
        """The seconds to wait after accepting L{most_in_a_turn} connections before accepting more."""
        return 0.0 if len(self) < self._most else _STAY_SECONDS / _ROUNDS

    def enter(self, connection: TrackedConnection) -> bool:
        """Admit C{connection}. If the site is full, drop the oldest connection without proof.

        :return: True, or False if the limiter is closed.
        """
        if self.closed:
            return False
        if len(self) >= self._most:
            self._drop(next(iter(self._unproven)))  # always found, as not all places can be kept
        self._unproven[connection] = 0
        return True

    def keep(self, connection: TrackedConnection, owner: str) -> None:
        """Protect C{connection} from being dropped, since it proved that it belongs to C{owner}.

        If the owner has used up its share of the protected places, do nothing. The same if the connection was not
        admitted.
        """
        if self._owners.get(connection) == owner or not (connection in self._unproven or connection in self._owners):
            return
        if not self._has_room_for(owner) or not (connection in self._unproven or connection in self._owners):
            return  # or it held most when another lost its place
        held = self.leave(connection)
        self._owners[connection] = owner
        self._kept[owner][connection] = 0
        self.count(connection, held)

    def give_up(self, connection: TrackedConnection) -> None:
        """Remove the protection of C{connection}. From now on it may be dropped while the site is full."""
        if connection in self._owners:
            held = self.leave(connection)
            self._unproven[connection] = 0
            self.count(connection, held)

    def forget(self, owner: str) -> None:
        """Remove the protection of all connections of C{owner}, whose credential is no longer valid."""
        for connection in [*self._kept.get(owner, ())]:
            self.give_up(connection)

    def count(self, connection: TrackedConnection, held: int) -> None:
        """Record the bytes held for C{connection}. If the total is too large, drop the connection that holds most."""
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
        """Return the owner that C{connection} proved, or None if it proved none and may be dropped."""
        return self._owners.get(connection)

    def rested(self, connection: TrackedConnection) -> None:
        """Record that C{connection} has received its response and is idle."""
        owner = self._owners.get(connection)
        if owner is not None:
            self._kept[owner][connection] = self._kept[owner].pop(connection)

    def close(self) -> None:
        """Drop all idle connections now, and the others after their answers. Idempotent."""
        self.closed = True
        for connection in self.connections:
            if connection.at_rest:
                self._drop(connection)

    def leave(self, connection: TrackedConnection) -> int:
        """Remove C{connection}, which is closed. Idempotent.

        :return: the bytes that were held for it.
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
        """Return whether one more connection of C{owner} may be protected from being dropped.

        If all protected places are used, take one from the owner with the most places. If that owner would then have
        fewer than C{owner}, take none and return False.
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
    """Return the first idle connection, or else the first of all.

    :param connections: ordered by their last use, the least recent first.
    """
    ordered = list(connections)
    return next((connection for connection in ordered if connection.at_rest), ordered[0])


def _holds_most(connections: Mapping[TrackedConnection, int]) -> TrackedConnection:
    return max(connections, key=connections.__getitem__)


MOST_BEGUN_IN_A_TURN = 16
"""The most requests started in one turn of the reactor, apart from first requests of connections."""


class QueuedConnection(Protocol):
    """A connection with a request to start."""

    def take_turn(self) -> None:
        """Start the next request. If the connection has more requests, it may be queued again."""


class RequestTurns:
    """A scheduler that spreads the requests of a site over turns of the reactor.

    If some must wait, the owners of their connections take turns. An owner with many connections is served no more
    often than one with a single connection.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._begun = 0  # started in this turn
        self._scheduled = False
        self._queues: OrderedDict[str | None, OrderedDict[QueuedConnection, None]] = OrderedDict()  # by owner
        self._owners: dict[QueuedConnection, str | None] = {}

    def begin(self) -> bool:
        """Count a request that is about to start.

        :return: True if it may start in this turn.
        """
        if self._begun >= MOST_BEGUN_IN_A_TURN:
            return False
        self._begun += 1
        self._schedule()
        return True

    def wait(self, connection: QueuedConnection, owner: str | None) -> None:
        """Queue C{connection} until a later iteration of the reactor. Idempotent.

        :param owner: the owner of the connection, or None if it has not proved any.
        """
        if connection not in self._owners:
            self._owners[connection] = owner
            self._queues.setdefault(owner, OrderedDict())[connection] = None
            self._schedule()

    def leave(self, connection: QueuedConnection) -> None:
        """Remove C{connection} from the queue. Idempotent."""
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
        """Start queued requests, one owner after another, up to the limit for a turn of the reactor.

        Schedule the others.
        """
        self._scheduled, self._begun = False, 0
        try:
            for _ in range(min(MOST_BEGUN_IN_A_TURN, len(self._owners))):
                if self._owners:  # a turn may close another connection
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
