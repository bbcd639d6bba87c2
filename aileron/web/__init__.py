"""The operator's web pages, which a browser shows after a login.

The browser gets the same static page (the shell) at every address. Its script then fetches the content of the page (a
fragment) with a request that the browser's key signs.
"""

from ._entrance import set_cookie
from ._pages import BY_CODE, Entrance, pages
from .parts import LANDING_POLICY, landing, moved

__all__ = ["BY_CODE", "LANDING_POLICY", "Entrance", "landing", "moved", "pages", "set_cookie"]
