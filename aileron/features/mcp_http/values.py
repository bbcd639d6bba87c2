"""The settings of MCP over HTTP, the requests and answers of it, and what serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from attrs import field, frozen
from zope.interface import Interface

from aileron.model.sessions import Session

PATH = "/mcp"
"""The path on the agent site."""


@frozen
class McpSettings:
    """The settings of C{/mcp}.

    :ivar http: True if agents reach their tools over HTTP as well.
    :ivar sessions: MCP sessions that one agent may have at once.
    :ivar idle_seconds: after which an MCP session without a request under way ends.
    :ivar listed_actions: how many actions are listed as tools at most; of more, only those that are used most.
    """

    http: bool = False
    sessions: int = 16
    idle_seconds: int = 1800
    listed_actions: int = 40


@frozen
class McpRequest:
    """A request that the guard admitted.

    :ivar session: the agent's session, authenticated by the token.
    :ivar token: the agent's token.
    :ivar fields: the head's fields, in order.
    """

    session: Session
    token: str = field(repr=False)
    method: str
    path: str
    fields: Sequence[tuple[bytes, bytes]] = field(repr=False)
    body: bytes = field(repr=False)


@frozen
class McpReply:
    """An answer whose body is produced as the client reads it.

    :ivar headers: the headers, without those of a connection.
    :ivar chunks: of the body; the next one is produced when it is requested.
    :ivar close: releases the answer. Call it once no more chunks are requested, for whatever reason.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    close: Callable[[], object]


class IMcp(Interface):
    """Serves each agent its own tools, and no agent the MCP sessions of another."""

    async def serve(request: McpRequest) -> McpReply:
        """Answer one request. Cancelling reports to the protocol that the client has disconnected.

        :raises LimitExceeded: the agent has too many requests under way, or there are too many agents.
        :raises InternalError: the endpoint is not open, or it failed.
        """

    def ended(session_id: str) -> None:
        """End the MCP sessions of an agent's session, and their requests under way. Idempotent."""
