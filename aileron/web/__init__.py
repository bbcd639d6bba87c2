"""The operator's pages: a static shell that any navigation gets, and what its script fetches with the page key."""

from ._pages import pages
from ._parts import KnownBy, PageParts

__all__ = ["KnownBy", "PageParts", "pages"]
