"""What serves MCP to agents that speak HTTP."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from zope.interface import Interface

from aileron.values import McpReply, McpRequest


class IMcp(Interface):
    """Serves each agent its own tools, and no agent another's sessions."""

    async def serve(request: McpRequest) -> McpReply:
        """Answer one request.  Cancelling tells the protocol that the client has gone.

        :raises LimitExceeded: the agent has too many requests under way, or there are too many agents.
        :raises InternalError: it is not open, or it failed.
        """

    def ended(session_id: str) -> None:
        """The agent's session is over: so are its sessions of the protocol, and what is under way.  Twice is safe."""


class IMcpService(IMcp):
    """One that is started and stopped."""

    def open(url: str) -> Deferred[None]:
        """Begin to serve; fires when it does.

        :param url: of the agent site, where everything is asked.
        """

    def close() -> Deferred[None]:
        """End everything; fires when that is done.  To be called once, after L{open} has fired."""
