"""A catalogue of actions in memory, and the tests that every implementation of L{ICatalogue} must pass."""

from __future__ import annotations

from attrs import define, field
from zope.interface import implementer
from zope.interface.verify import verifyObject

from aileron.model.actions import Action, Catalogue
from aileron.model.interfaces.connectors import ICatalogue

from ._case import MixedIn


@implementer(ICatalogue)
@define(eq=False)
class MemoryCatalogue:
    """A catalogue with the actions that a test adds.

    :ivar generation: the first generation.
    """

    generation: int = 1
    _actions: dict[str, Action] = field(factory=dict, init=False)
    _catalogue: Catalogue = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._catalogue = Catalogue(self.generation, {})

    def put(self, action: Action) -> Catalogue:
        """Add C{action}, replacing one with its name, and refresh."""
        self._actions[action.name] = action
        return self.refresh()

    def remove(self, name: str) -> Catalogue:
        """Remove an action and refresh."""
        del self._actions[name]
        return self.refresh()

    def current(self) -> Catalogue:
        return self._catalogue

    def refresh(self) -> Catalogue:
        self._catalogue = self._catalogue.updated(dict(self._actions), ())
        return self._catalogue


class CatalogueContract(MixedIn):
    """Tests of L{ICatalogue}.  Mix into a test case that creates a catalogue and can change its source."""

    def make(self) -> ICatalogue:
        """Return an empty catalogue."""
        raise NotImplementedError

    def change(self, number: int) -> None:
        """Make the next refresh of the catalogue find an action named C{action-<number>}."""
        raise NotImplementedError

    def test_interface(self) -> None:
        """The catalogue provides the interface."""
        self.assertTrue(verifyObject(ICatalogue, self.make()))

    def test_refreshed(self) -> None:
        """A change is visible after a refresh, with the next generation."""
        catalogue = self.make()
        before = catalogue.current()
        self.assertEqual(catalogue.refresh(), before)
        self.change(1)
        after = catalogue.refresh()
        self.assertEqual(list(after.actions), ["action-1"])
        self.assertEqual(after.generation, before.generation + 1)
        self.assertEqual(catalogue.current(), after)
