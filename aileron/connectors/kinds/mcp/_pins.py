"""A tool as its server describes it, and the digest that pins an operation to this description."""

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
"""The keys of a description that the digest covers: everything about the tool's purpose and inputs."""

MOST_PAGES = 64
MOST_TOOLS = 2000
MOST_BYTES = 4 * 1024 * 1024
"""The limit on the size of all descriptions; beyond it, no further page is requested."""

_MOST_CURSOR_CHARACTERS = 4096


@frozen
class Tool:
    """A tool as its server describes it.

    :ivar described: the parts of the description that the pin covers.
    :ivar pin: the digest of C{described} in canonical JSON (RFC 8785).
    :ivar size: the number of bytes that the digest covers.
    """

    name: str
    described: Mapping[str, JSON]
    pin: str
    size: int


@frozen
class Listing:
    """The listed tools of a server.

    :ivar is_whole: True if these are all the tools, False if a limit was reached.
    """

    tools: tuple[Tool, ...]
    is_whole: bool


async def list_tools(session: McpSession, sought: str | None = None) -> Listing:
    """Request all pages of the server's tools, and return all tools, or those named C{sought}.

    Every page is read even if C{sought} was found, because a later page may have a second tool of that name.

    :raises NotUnderstood: if a response is not a list of tools.
    :raises Rejected: if the server refuses the request.
    :raises Exception: any other error of L{McpSession.request}.
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
            # The server repeats its pages: there are no further tools, and equal descriptions are one tool.
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
    """Return the tools of a page, and the cursor of the next page or None.

    At most one tool more than L{MOST_TOOLS} is parsed, because parsing takes time in the reactor.

    :param sought: the only name to return, or None for every tool.
    :param left_out: names of tools to leave out.
    :raises NotUnderstood: if the response is not a list of tools.
    :raises Rejected: if the response is an error.
    """
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        code = error.get("code")
        raise Rejected("to list its tools", str(error.get("message", "")), code if isinstance(code, int) else None)
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(tools, list):
        raise NotUnderstood
    cursor = result.get("nextCursor") or None  # some servers end their list with an empty cursor
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
    except ValueError:  # a number that parsers may read differently
        raise NotUnderstood from None
    return Tool(described["name"], described, digest_of_bytes(written), len(written))
