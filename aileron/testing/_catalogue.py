"""A catalogue that holds what it was given."""

from __future__ import annotations

from attrs import define, field
from zope.interface import implementer

from aileron.interfaces import ICatalogue
from aileron.values import Action, Catalogue


@implementer(ICatalogue)
@define(eq=False)
class MemoryCatalogue:
    """A catalogue that holds what it was given.

    :ivar generation: what the generations begin with.
    """

    generation: int = 1
    _actions: dict[str, Action] = field(factory=dict, init=False)
    _catalogue: Catalogue = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._catalogue = Catalogue(self.generation, {})

    def put(self, action: Action) -> Catalogue:
        """Add C{action}, or put it in the place of the one with its name."""
        self._actions[action.name] = action
        return self.refresh()

    def remove(self, name: str) -> Catalogue:
        """Take an action out."""
        del self._actions[name]
        return self.refresh()

    def current(self) -> Catalogue:
        return self._catalogue

    def refresh(self) -> Catalogue:
        self._catalogue = self._catalogue.after_a_look(dict(self._actions), ())
        return self._catalogue
