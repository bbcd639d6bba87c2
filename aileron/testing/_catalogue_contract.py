"""What every catalogue must do."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred
from zope.interface.verify import verifyObject

from aileron.interfaces import ICatalogue
from aileron.values import Catalogue

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Case
else:
    _Case = object


class CatalogueContract(_Case):
    """Mix into a test case that makes a catalogue and knows how to change what it follows."""

    def make(self) -> ICatalogue:
        """A catalogue of nothing yet."""
        raise NotImplementedError

    def change(self, number: int) -> None:
        """Make the next refresh of the catalogue find an action named C{action-<number>}."""
        raise NotImplementedError

    def test_interface(self) -> None:
        """It provides the interface."""
        self.assertTrue(verifyObject(ICatalogue, self.make()))

    def test_waits_for_a_change(self) -> None:
        """Who waits for another generation has no result, then the change, then the new catalogue."""
        catalogue = self.make()
        before = catalogue.current()
        wait = catalogue.changed(before.generation)
        catalogue.refresh()
        self.assertNoResult(wait)
        self.change(1)
        after = catalogue.refresh()
        self.assertEqual(self.successResultOf(wait), after)
        self.assertEqual(list(after.actions), ["action-1"])
        self.assertEqual(after.generation, before.generation + 1)
        self.assertEqual(catalogue.current(), after)

    def test_another_generation_is_answered_at_once(self) -> None:
        """Who knows another generation, older or of another life, does not wait."""
        catalogue = self.make()
        for generation in (0, catalogue.current().generation + 7):
            self.assertEqual(self.successResultOf(catalogue.changed(generation)), catalogue.current())

    def test_each_has_a_wait_of_its_own(self) -> None:
        """Cancelling one wait ends that one; a waiter that fails does not keep the news from the next."""
        catalogue = self.make()
        generation = catalogue.current().generation
        cancelled, failing, last = (catalogue.changed(generation) for _ in range(3))
        failing.addCallback(lambda _: 1 // 0)
        cancelled.cancel()
        self.failureResultOf(cancelled, CancelledError)
        self.change(1)
        after = catalogue.refresh()
        self.failureResultOf(failing, ZeroDivisionError)
        self.assertEqual(self.successResultOf(last), after)

    def test_a_cancelled_wait_is_not_kept(self) -> None:
        """Clients that come and go leave nothing behind."""
        catalogue = self.make()
        wait = catalogue.changed(catalogue.current().generation)
        reference = weakref.ref(wait)
        wait.cancel()
        self.failureResultOf(wait, CancelledError)
        del wait
        gc.collect()
        self.assertIsNone(reference())

    def test_a_waiter_may_cancel_another(self) -> None:
        """One that is told may cancel one that is not yet, and may wait again."""
        catalogue = self.make()
        generation = catalogue.current().generation
        again: list[Deferred[Catalogue]] = []
        first = catalogue.changed(generation)
        second = catalogue.changed(generation)
        first.addCallback(lambda found: again.append(catalogue.changed(found.generation)))
        first.addCallback(lambda _: second.cancel())
        self.change(1)
        catalogue.refresh()
        self.failureResultOf(second, CancelledError)
        self.assertNoResult(again[0])
        self.change(2)
        after = catalogue.refresh()
        self.assertEqual(self.successResultOf(again[0]), after)
