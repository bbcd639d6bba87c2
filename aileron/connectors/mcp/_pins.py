"""A tool as its server describes it, and the digest by which an operation is pinned to that description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from aileron.connectors._conversation import NotUnderstood, Rejected
from aileron.values import JSON, digest

from ._session import McpSession
from ._wire import Delivery, Message

PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What the digest covers: all that says what a tool does and takes."""

MOST_PAGES = 64
MOST_TOOLS = 2000
_MOST_CURSOR_CHARACTERS = 4096


@frozen
class Tool:
    """A tool.

    :ivar described: what the pin covers, as the server says it.
    :ivar pin: the digest of that (RFC 8785).
    """

    name: str
    described: Mapping[str, JSON]
    pin: str


@frozen
class Listing:
    """The tools of a server, as far as they were asked for.

    :ivar is_whole: whether these are all; else there were too many, or what was sought was found.
    """

    tools: tuple[Tool, ...]
    is_whole: bool


async def list_tools(session: McpSession, sought: str | None = None) -> Listing:
    """Ask for one page of tools after the other, until C{sought} is among them.

    :raises NotUnderstood: an answer is no list of tools.
    :raises Rejected: the server refuses.
    """
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        tools, cursor = _read_page(await session.list_tools(cursor, Delivery()))
        found += tools
        if cursor is None:
            return Listing(tuple(found), is_whole=True)
        if len(found) >= MOST_TOOLS or any(each.name == sought for each in tools):
            break
    return Listing(tuple(found), is_whole=False)


def _read_page(answer: Message) -> tuple[Sequence[Tool], str | None]:
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        code = error.get("code")
        raise Rejected("to list its tools", str(error.get("message", "")), code if isinstance(code, int) else None)
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(tools, list):
        raise NotUnderstood
    cursor = result.get("nextCursor")
    if cursor is not None and not (isinstance(cursor, str) and len(cursor) <= _MOST_CURSOR_CHARACTERS):
        raise NotUnderstood
    return [_read_tool(each) for each in tools], cursor


def _read_tool(said: JSON) -> Tool:
    name = said.get("name") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(name, str):
        raise NotUnderstood
    described = {key: said[key] for key in PINNED if said.get(key) is not None}
    try:
        return Tool(name, described, digest(described))
    except ValueError:  # a number that no two readers would take alike
        raise NotUnderstood from None
