"""The directory of actions."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from zope.interface import Interface

from aileron.values import Catalogue


class ICatalogue(Interface):
    """The action files of the home, followed live.  This is the one place that loads their bytes."""

    def current() -> Catalogue:
        """The directory as it was last read."""

    def changed(generation: int) -> Deferred[Catalogue]:
        """The catalogue as soon as its generation is another than C{generation}; at once, if it is.

        Each caller has a Deferred of its own; cancelling it ends that wait.
        """

    def refresh() -> Catalogue:
        """Read the directory now (a file whose stat is the same is not read again) and tell who waits if it changed."""
