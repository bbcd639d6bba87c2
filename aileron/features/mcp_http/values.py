"""The settings, requests and answers of MCP over HTTP, and the interface of the endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from attrs import field, frozen
from zope.interface import Interface

from aileron.model.sessions import Session

PATH = "/mcp"
"""The path of the endpoint on the agent site."""


@frozen
class McpSettings:
    """The settings of C{/mcp}.

    :ivar http: True if agents reach their tools over HTTP as well.
    :ivar sessions: the most MCP sessions that one agent may have at once.
    :ivar idle_seconds: the seconds after which an MCP session without a request under way ends.
    :ivar listed_actions: the most actions that are listed as tools. If there are more, only the most used are listed.
    """

    http: bool = False
    sessions: int = 16
    idle_seconds: int = 1800
    listed_actions: int = 40


@frozen
class McpRequest:
    """A request of an authenticated agent.

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

    :ivar headers: the headers, without hop-by-hop headers.
    :ivar chunks: the pieces of the body. Each is produced when it is requested.
    :ivar close: releases the answer. Call it when no more pieces will be requested, also after an error.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    close: Callable[[], object]


class IMcp(Interface):
    """The endpoint of MCP over HTTP. An agent cannot use the MCP sessions of another agent."""

    async def serve(request: McpRequest) -> McpReply:
        """Answer one request. Cancelling counts as a disconnection of the client.

        :raises LimitExceeded: if the agent has too many requests under way, or there are too many agents.
        :raises InternalError: if the endpoint is not open, or it failed.
        """

    def ended(session_id: str) -> None:
        """End the MCP sessions of an agent's session, and their requests under way. Idempotent."""
