"""The door for daemons, which load the SDK only if it is wanted: half a second and 31 MB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aileron.interfaces import IMcpService
    from aileron.values import McpSettings


def over_http(reactor: Any, settings: McpSettings) -> IMcpService:
    """What serves MCP to agents that speak HTTP.  Loads the SDK.

    :param reactor: provides time, TCP and threads.
    """
    from aileron.client import Connections

    from ._bridge import LoopThread
    from .http.door import HttpDoor
    from .http.hush import hush

    hush()
    return HttpDoor(reactor, settings, LoopThread(reactor), Connections(reactor))
