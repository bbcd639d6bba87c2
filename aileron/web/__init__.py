"""The operator's web pages: a static shell for every navigation, and fragments that its script fetches and signs."""

from ._pages import pages
from .parts import LANDING_POLICY, landing, moved

__all__ = ["LANDING_POLICY", "landing", "moved", "pages"]
