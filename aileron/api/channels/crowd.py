"""How many connections are relayed at once: whoever rests longest makes room for whoever comes."""

from __future__ import annotations

from typing import Protocol


class Guest(Protocol):
    """A connection, as far as crowds are concerned."""

    @property
    def at_rest(self) -> bool:
        """Whether it waits for no answer of ours."""

    def drop(self) -> None:
        """Close it at once; L{Crowd.leave} follows."""


class Destination(Protocol):
    """Where a connection can go on to."""

    def enter(self, guest: Guest) -> bool:
        """Let C{guest} in; whether there was room."""


class Crowd:
    """Connections of one kind, those first that rest longest.

    :ivar closed: nobody comes in any more, and whoever is answered goes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._guests: dict[Guest, None] = {}
        self.closed = False

    def enter(self, guest: Guest) -> bool:
        """Let C{guest} in, in the place of the one that rests longest if there are too many.

        :return: whether there was room; without, nobody rests and C{guest} stays outside.
        """
        if self.closed or (len(self._guests) >= self._most and not self._make_room()):
            return False
        self._guests[guest] = None
        return True

    def moved(self, guest: Guest, to: Destination) -> bool:
        """Let C{guest} go on from here to somewhere else.

        :return: whether there was room; without, C{guest} stays.
        """
        if not to.enter(guest):
            return False
        self._guests.pop(guest, None)
        return True

    def rested(self, guest: Guest) -> None:
        """C{guest} has got an answer and rests from now on."""
        if guest in self._guests:
            self._guests[guest] = self._guests.pop(guest)

    def close(self) -> None:
        """Let go of everybody who rests, and of the others once they are answered.  Twice is safe."""
        self.closed = True
        while self._make_room():
            """The next."""

    def leave(self, guest: Guest) -> None:
        """C{guest} is gone.  Twice is safe."""
        self._guests.pop(guest, None)

    def _make_room(self) -> bool:
        resting = next((guest for guest in self._guests if guest.at_rest), None)
        if resting is not None:
            self.leave(resting)
            resting.drop()
        return resting is not None
