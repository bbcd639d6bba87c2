"""The LLM gateway: carries what an agent and its provider say to each other, as the bytes that it is.

L{build} makes it; the agent site's channel asks it about each request; L{Tally} counts.  L{published} tells what it
takes.
"""

from ._build import build
from ._gateway import Gateway
from ._routes import published
from ._tally import Tally

__all__ = ["Gateway", "Tally", "build", "published"]
