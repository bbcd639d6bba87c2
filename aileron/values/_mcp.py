"""MCP over HTTP: what the operator says of it, and one request and its answer on their way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from attrs import field, frozen

from ._sessions import Session


@frozen
class McpSettings:
    """The settings of C{/mcp}: if agents reach their tools over HTTP as well, and within which bounds.

    :ivar sessions: of the protocol, that one agent may have at once.
    :ivar idle_seconds: after which one without a request under way is over.
    :ivar listed_actions: how many actions are listed as tools at most; of more, only those that are used most.
    """

    http: bool = False
    sessions: int = 16
    idle_seconds: int = 1800
    listed_actions: int = 40


@frozen
class McpRequest:
    """A request that the guard let in.

    :ivar session: of the agent, proven.
    :ivar token: by which it was.
    :ivar fields: of the head, in its order.
    """

    session: Session
    token: str = field(repr=False)
    method: str
    path: str
    fields: Sequence[tuple[bytes, bytes]] = field(repr=False)
    body: bytes = field(repr=False)


@frozen
class McpReply:
    """An answer whose body is made as the client takes it.

    :ivar headers: without those of a connection.
    :ivar chunks: of the body; the next is made when it is asked for.
    :ivar close: to be called once nobody asks for more, in whatever way that came about.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    close: Callable[[], object]
