"""The operator's web pages: a static shell for every navigation, and fragments that its script fetches and signs."""

from ._entrance import set_cookie
from ._pages import BY_CODE, Entrance, pages
from .parts import LANDING_POLICY, landing, moved

__all__ = ["BY_CODE", "LANDING_POLICY", "Entrance", "landing", "moved", "pages", "set_cookie"]
