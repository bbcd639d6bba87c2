"""The directory of actions."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import Catalogue


class ICatalogue(Interface):
    """The action files of the home.  This is the one place that loads their bytes."""

    def current() -> Catalogue:
        """The directory as it was last read."""

    def refresh() -> Catalogue:
        """Read the directory now; a file whose stat is the same is not read again."""
