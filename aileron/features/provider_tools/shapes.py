"""The places in a request that name provider-run tools, as documented by Anthropic and OpenAI."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from attrs import define, field, frozen

from aileron.base.addresses import read_origin
from aileron.features.gateway.values import ToolKind

_MOST_HOSTS = 8
# Tools that the client runs, or that only organize the other tools.
_OF_THE_CLIENT = re.compile(
    r"function|custom|namespace|tool_search|local_shell|shell|apply_patch|programmatic_tool_calling"
    r"|(?:bash|text_editor|memory)_[0-9]+|tool_search_tool_(?:regex|bm25)(?:_[0-9]+)?"
).fullmatch
_BEGINNINGS: Mapping[str, ToolKind] = {
    "mcp": ToolKind.REMOTE_MCP,
    "web_search": ToolKind.WEB_SEARCH,
    "web_fetch": ToolKind.WEB_FETCH,
    "code_execution": ToolKind.CODE_EXECUTION,
    "code_interpreter": ToolKind.CODE_EXECUTION,
    "computer": ToolKind.COMPUTER_USE,
    "browser_toolset": ToolKind.COMPUTER_USE,
    "file_search": ToolKind.FILE_SEARCH,
    "image_generation": ToolKind.IMAGE_GENERATION,
}


@define(eq=False)
class Facts:
    """The facts found in one object: kinds of tools, and hosts of remote MCP servers (empty if not readable)."""

    kinds: set[ToolKind]
    hosts: set[str] = field(factory=set)


Leaf = Callable[[Facts, str], None]
"""A function that reads a string value, and adds what it finds to the facts of the object."""


@frozen
class ToolShape:
    """The members to read of an object, or of each object in an array.

    :ivar fields: the shapes or functions that read the members, by the members' names in lower case. Other members are
        skipped.
    :ivar kinds: the kinds of tools that are present if the object is present.
    """

    fields: Mapping[str, ToolShape | Leaf]
    kinds: tuple[ToolKind, ...] = ()


def _read_type(facts: Facts, text: str) -> None:
    if not _OF_THE_CLIENT(text):
        found = (kind for start, kind in _BEGINNINGS.items() if text.startswith(start))
        facts.kinds.add(next(found, ToolKind.OTHER))


def _read_host(facts: Facts, text: str) -> None:
    try:
        host = read_origin(text).host
    except ValueError:
        host = ""
    facts.hosts.add(host if len(facts.hosts) < _MOST_HOSTS else "")


def _read_environment(facts: Facts, text: str) -> None:
    """Read the environment of OpenAI's tool C{shell}. The provider runs the tool unless the environment is C{local}."""
    if text != "local":
        facts.kinds.add(ToolKind.CODE_EXECUTION)


def _make_request() -> ToolShape:
    tool: dict[str, ToolShape | Leaf] = {"type": _read_type, "server_url": _read_host}
    tool["environment"] = ToolShape({"type": _read_environment})
    tool["tools"] = tools = ToolShape(tool)  # a namespace contains tools
    # Tools can be added within a conversation.
    block: dict[str, ToolShape | Leaf] = {"tool": ToolShape({"definition": tools})}
    block["tool_changes"] = ToolShape(block)
    with_tools = ToolShape({"tools": tools})
    messages = ToolShape({"content": ToolShape(block), "attachments": with_tools})
    request: dict[str, ToolShape | Leaf] = {
        "tools": tools,
        "mcp_servers": ToolShape({"url": _read_host}, (ToolKind.REMOTE_MCP,)),
        "web_search_options": ToolShape({}, (ToolKind.WEB_SEARCH,)),
        "messages": messages,
        "additional_messages": messages,  # in a run of an assistant
        "input": with_tools,
        "data_source": ToolShape({"sampling_params": with_tools}),  # in an evaluation
        "delegation": ToolShape({"responses": with_tools}),  # in the Live API
    }
    request["requests"] = ToolShape({"params": ToolShape(request)})  # in a batch
    for name in ("session", "agent", "target", "thread"):  # in the Realtime API, agents' sessions and assistants
        request[name] = ToolShape(request)
    return ToolShape(request)


REQUEST = _make_request()
"""The shape of a request to any provider."""
