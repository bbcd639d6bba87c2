"""A tool as its server describes it, and the digest by which an operation is pinned to that description."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from aileron.base.json import JSON, canonical, digest_of_bytes
from aileron.connectors._conversation import NotUnderstood, Rejected

from ._session import McpSession
from ._wire import Delivery, Message

PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What the digest covers: all that says what a tool does and takes."""

MOST_PAGES = 64
MOST_TOOLS = 2000
MOST_BYTES = 4 * 1024 * 1024
"""How much the descriptions of all tools may have; no further page is asked for."""

_MOST_CURSOR_CHARACTERS = 4096


@frozen
class Tool:
    """A tool.

    :ivar described: what the pin covers, as the server says it.
    :ivar pin: the digest of that (RFC 8785).
    :ivar size: how many bytes that digest covers.
    """

    name: str
    described: Mapping[str, JSON]
    pin: str
    size: int


@frozen
class Listing:
    """The tools of a server, as far as they were asked for.

    :ivar is_whole: whether these are all; else there were too many.
    """

    tools: tuple[Tool, ...]
    is_whole: bool


async def list_tools(session: McpSession, sought: str | None = None) -> Listing:
    """Ask for one page of tools after the other, and keep all tools, or those of the name C{sought}.

    Every page is read also for one name, because another page may have a second tool of that name.

    :raises NotUnderstood: an answer is no list of tools.
    :raises Rejected: the server refuses.
    """
    found: list[Tool] = []
    size, cursor = 0, None
    asked: set[str] = set()
    for _ in range(MOST_PAGES):
        delivery = Delivery()
        tools, cursor = _read_page(await session.list_tools(cursor, delivery), sought, delivery.left_out)
        found += tools
        size += sum(each.size for each in tools)
        if cursor in asked:
            # The server goes round in a circle: nothing new comes, and what came twice is one tool.
            found, cursor = list({each.pin: each for each in found}.values()), None
        asked.add(cursor or "")
        if cursor is None and len(found) <= MOST_TOOLS:
            return Listing(tuple(found), is_whole=True)
        if cursor is None or len(found) >= MOST_TOOLS or size >= MOST_BYTES:
            break
    return Listing(tuple(found[:MOST_TOOLS]), is_whole=False)


def _read_page(
    answer: Message, sought: str | None = None, left_out: Collection[str] = ()
) -> tuple[Sequence[Tool], str | None]:
    """Read a page: the tools of the name that is sought, or all, as far as as many are listed.

    More is not read, because each takes time in the reactor.
    """
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        code = error.get("code")
        raise Rejected("to list its tools", str(error.get("message", "")), code if isinstance(code, int) else None)
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(tools, list):
        raise NotUnderstood
    cursor = result.get("nextCursor") or None  # some servers end their list with an empty one
    if cursor is not None and not (isinstance(cursor, str) and len(cursor) <= _MOST_CURSOR_CHARACTERS):
        raise NotUnderstood
    named = [(_name(each), each) for each in tools]
    wanted = (each for name, each in named if name not in left_out and sought in (None, name))
    return [_read_tool(each) for each in islice(wanted, MOST_TOOLS + 1)], cursor


def _name(said: JSON) -> str:
    name = said.get("name") if isinstance(said, dict) else None
    if not isinstance(name, str):
        raise NotUnderstood
    return name


def _read_tool(said: Any) -> Tool:
    described = {key: said[key] for key in PINNED if said.get(key) is not None}
    try:
        written = canonical(described)
    except ValueError:  # a number that no two readers would take alike
        raise NotUnderstood from None
    return Tool(described["name"], described, digest_of_bytes(written), len(written))
