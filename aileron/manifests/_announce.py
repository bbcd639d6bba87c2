"""The catalogue of the moment, and who waits for the next."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, succeed

from aileron.values import Action, Catalogue, LoadError


@define(eq=False)
class Announcer:
    """Holds the catalogue; gives each change a generation of its own and tells everyone who waits.

    :ivar catalogue: as it was last published; what is given to begin with sets the first generation.
    """

    catalogue: Catalogue
    _waiting: list[Deferred[Catalogue]] = field(factory=list, init=False)

    def publish(self, actions: Mapping[str, Action], load_errors: tuple[LoadError, ...]) -> Catalogue:
        """Make this the catalogue; if it is another than before, its generation grows by one and who waits is told."""
        same = evolve(self.catalogue, actions=actions, load_errors=load_errors)
        if same != self.catalogue:
            self.catalogue = evolve(same, generation=same.generation + 1)
            self._tell()
        return self.catalogue

    def after(self, generation: int) -> Deferred[Catalogue]:
        """The catalogue as soon as its generation is another than C{generation}; cancelling ends this wait only."""
        if self.catalogue.generation != generation:
            return succeed(self.catalogue)
        waiter: Deferred[Catalogue] = Deferred(self._forget)
        self._waiting.append(waiter)
        return waiter

    def _tell(self) -> None:
        told, self._waiting = self._waiting, []
        for waiter in told:
            # One that is told may cancel another.
            if not waiter.called:
                waiter.callback(self.catalogue)

    def _forget(self, waiter: Deferred[Catalogue]) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)
