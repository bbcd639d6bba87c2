"""A catalogue that holds what it was given."""

from __future__ import annotations

from attrs import define, field
from twisted.internet.defer import Deferred
from zope.interface import implementer

from aileron.interfaces import ICatalogue
from aileron.manifests import Announcer
from aileron.values import Action, Catalogue


@implementer(ICatalogue)
@define(eq=False)
class MemoryCatalogue:
    """A catalogue that holds what it was given.

    :ivar generation: what the generations begin with.
    """

    generation: int = 1
    _actions: dict[str, Action] = field(factory=dict, init=False)
    _announcer: Announcer = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._announcer = Announcer(Catalogue(self.generation, {}))

    def put(self, action: Action) -> Catalogue:
        """Add C{action}, or put it in the place of the one with its name."""
        self._actions[action.name] = action
        return self.refresh()

    def remove(self, name: str) -> Catalogue:
        """Take an action out."""
        del self._actions[name]
        return self.refresh()

    def current(self) -> Catalogue:
        """See L{ICatalogue.current}."""
        return self._announcer.catalogue

    def changed(self, generation: int) -> Deferred[Catalogue]:
        """See L{ICatalogue.changed}."""
        return self._announcer.after(generation)

    def refresh(self) -> Catalogue:
        """See L{ICatalogue.refresh}."""
        return self._announcer.publish(dict(self._actions), ())
