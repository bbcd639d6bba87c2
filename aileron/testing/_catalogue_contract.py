"""The contract of every catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zope.interface.verify import verifyObject

from aileron.interfaces import ICatalogue

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Case
else:
    _Case = object


class CatalogueContract(_Case):
    """Mix into a test case that makes a catalogue and knows how to change what it follows."""

    def make(self) -> ICatalogue:
        """Make a catalogue of nothing yet."""
        raise NotImplementedError

    def change(self, number: int) -> None:
        """Make the next refresh of the catalogue find an action named C{action-<number>}."""
        raise NotImplementedError

    def test_interface(self) -> None:
        """It provides the interface."""
        self.assertTrue(verifyObject(ICatalogue, self.make()))

    def test_refreshed(self) -> None:
        """What changed is seen once it is looked for, under a generation of its own."""
        catalogue = self.make()
        before = catalogue.current()
        self.assertEqual(catalogue.refresh(), before)
        self.change(1)
        after = catalogue.refresh()
        self.assertEqual(list(after.actions), ["action-1"])
        self.assertEqual(after.generation, before.generation + 1)
        self.assertEqual(catalogue.current(), after)
