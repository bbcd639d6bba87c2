"""What serves MCP to agents that speak HTTP, and the routes that it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.internet.defer import Deferred
from zope.interface import Interface

from aileron.values import McpReply, McpRequest


class IAgentRoutes(Interface):
    """The agent site's routes, asked in this process: behind the same guard, and with the same answers as over HTTP."""

    async def ask(
        token: str,
        method: str,
        path: Sequence[str],
        *,
        query: Mapping[str, str],
        body: bytes,
        prefer_seconds: float | None,
    ) -> tuple[int, bytes]:
        """Ask one route and return the status and the body of its answer.  Cancelling ends the wait only.

        :param token: an agent's; no other credential is taken.
        :param path: segments, as they are before any encoding.
        :param body: JSON, or empty.
        :param prefer_seconds: as C{Prefer: wait}; L{None}: not said.
        """


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

    def open(routes: IAgentRoutes) -> Deferred[None]:
        """Begin to serve; fires when it does.

        :param routes: where everything is asked.
        """

    def close() -> Deferred[None]:
        """End everything; fires when that is done.  To be called once, after L{open} has fired."""
