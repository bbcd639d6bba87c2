"""The operator's pages: a static shell that any navigation gets, and what its script fetches and signs."""

from ._pages import pages
from .parts import LANDING_POLICY, landing, moved

__all__ = ["LANDING_POLICY", "landing", "moved", "pages"]
