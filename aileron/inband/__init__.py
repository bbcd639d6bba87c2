"""In-band mode: offers actions to a model inside its own traffic, for clients that cannot speak MCP.

L{InBandHandler} stands before the gateway and takes the requests that are in-band mode's; the gateway knows nothing of
it.  L{published} tells what it takes.
"""

from ._conversation import STREAM_WAIT_SECONDS
from ._handler import InBandHandler, InBandParts, published

__all__ = ["STREAM_WAIT_SECONDS", "InBandHandler", "InBandParts", "published"]
