"""The operator's pages: a static shell that any navigation gets, and what its script fetches and signs."""

from ._landing import LANDING_POLICY, landing
from ._pages import pages
from ._parts import KnownBy, PageParts

__all__ = ["LANDING_POLICY", "KnownBy", "PageParts", "landing", "pages"]
