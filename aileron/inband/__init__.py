"""In-band mode: offers actions to a model inside its own traffic, for clients that cannot speak MCP.

L{serve_in_band} stands before the gateway and takes the requests that are in-band mode's; the gateway knows nothing of
it.  L{published} tells what it takes.
"""

from __future__ import annotations

from aileron.http1 import RelayHandler

from ._conversation import STREAM_WAIT_SECONDS
from ._handler import InBandHandler, InBandParts, published
from .protocols import ChatRequest, MessagesRequest, ResponsesRequest

__all__ = ["STREAM_WAIT_SECONDS", "InBandHandler", "InBandParts", "published", "serve_in_band"]


def serve_in_band(gateway: RelayHandler, parts: InBandParts) -> InBandHandler:
    """Make what takes in-band mode's requests, and leaves all others to the gateway."""
    protocols = {
        "openai.chat": ChatRequest,
        "openai.responses": ResponsesRequest,
        "anthropic.messages": MessagesRequest,
    }
    return InBandHandler(gateway, parts, protocols)
