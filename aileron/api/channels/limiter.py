"""How many connections a site holds at once, and who keeps a place among them while it is flooded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from .crowd import Crowd, Guest

MOST_CONNECTIONS = 256
"""Of a site that is told no other number.  With both full the daemon still has half of the 1024 descriptors that a
process usually gets; where it may have more, the agent site holds more."""

MOST_IN_A_TURN = 32
"""So many come in at most in a turn of the reactor while the site is full: as many are closed for them."""

_TURNS = 8
"""For how many turns of the reactor a connection that has proved nothing stays at least, while the site is full."""


class ConnectionLimiter:
    """Limits the connections of a site, and keeps places for those that have proved who they are.

    A connection that has proved nothing gives way to a new one, whatever it does: the oldest goes first.  So nobody can
    take all places without a credential.  While the site is full, few are let in at a time, so that each has time to
    prove itself.  Three quarters of the places can be kept.  The owners of the credentials share them: who has more
    than another gives up what is more.

    :param crowded: called when one had to give way, with how many may come in the next turn of the reactor.
    :ivar closed: nobody comes in any more, and a connection ends with its answer.
    """

    def __init__(self, most: int = MOST_CONNECTIONS, crowded: Callable[[int], object] = lambda _: None) -> None:
        self._most, self._crowded = most, crowded
        self._most_kept = most - max(1, most // 4)
        self._unproven: dict[Guest, None] = {}
        self._owners: dict[Guest, str] = {}
        self._kept: defaultdict[str, dict[Guest, None]] = defaultdict(dict)
        self.closed = False

    def __len__(self) -> int:
        """How many there are."""
        return len(self._unproven) + len(self._owners)

    def enter(self, guest: Guest) -> bool:
        """Let C{guest} in, in the place of the oldest that has proved nothing if all are taken.

        :return: whether there was room.
        """
        if self.closed:
            return False
        if len(self) >= self._most:
            self._crowded(max(1, min(MOST_IN_A_TURN, len(self._unproven) // _TURNS)))
            self._drop(next(iter(self._unproven)))  # there is one: not all places can be kept
        self._unproven[guest] = None
        return True

    def keep(self, guest: Guest, owner: str) -> None:
        """Keep the place of C{guest}, which has proved that it belongs to C{owner}, as far as the owner's share goes.

        One that is not inside is not let in by this.
        """
        if self._owners.get(guest) == owner or not (guest in self._unproven or guest in self._owners):
            return
        if not self._has_room_for(owner):
            return
        self.leave(guest)
        self._owners[guest] = owner
        self._kept[owner][guest] = None

    def moved(self, guest: Guest, to: Crowd) -> bool:
        """Let C{guest} go on from here to a crowd.

        :return: whether there was room; without, C{guest} stays.
        """
        if not to.enter(guest):
            return False
        self.leave(guest)
        return True

    def rested(self, guest: Guest) -> None:
        """C{guest} has got an answer and rests from now on."""
        owner = self._owners.get(guest)
        if owner is not None:
            self._kept[owner][guest] = self._kept[owner].pop(guest)

    def close(self) -> None:
        """Let go of everybody who rests, and of the others once they are answered.  Twice is safe."""
        self.closed = True
        for guest in [*self._unproven, *self._owners]:
            if guest.at_rest:
                self._drop(guest)

    def leave(self, guest: Guest) -> None:
        """C{guest} is gone.  Twice is safe."""
        self._unproven.pop(guest, None)
        owner = self._owners.pop(guest, None)
        if owner is not None:
            del self._kept[owner][guest]
            if not self._kept[owner]:
                del self._kept[owner]

    def _has_room_for(self, owner: str) -> bool:
        """Whether one more may be kept for C{owner}; the one who has most gives one up for it, unless that is fair."""
        if len(self._owners) < self._most_kept:
            return True
        most = max(self._kept.values(), key=len)
        if len(most) <= len(self._kept.get(owner, ())) + 1:
            return False
        given_up = _least_used(most)
        self.leave(given_up)
        self._unproven[given_up] = None
        return True

    def _drop(self, guest: Guest) -> None:
        self.leave(guest)
        guest.drop()


def _least_used(guests: Iterable[Guest]) -> Guest:
    """The one that has rested longest; where none rests, that was used least recently."""
    ordered = list(guests)
    return next((guest for guest in ordered if guest.at_rest), ordered[0])
