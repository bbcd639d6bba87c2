"""What C{config.yaml} says of MCP over HTTP: whether it is served, and within which bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aileron.values import McpSettings

from ._nodes import keys, number, switch

if TYPE_CHECKING:
    from yaml import Node

_MOST = {"sessions": 1000, "idle_seconds": 86_400, "listed_actions": 1000}


def mcp(node: Node) -> McpSettings:
    """Read the part of MCP.

    :raises NotConfig: a key is unknown, said twice, of another type or out of its bounds.
    """
    return McpSettings(**dict(_settings(node)))


def _settings(node: Node) -> Iterator[tuple[str, Any]]:
    for name, (part, line) in keys(node, "mcp", ("http", *_MOST)).items():
        if name == "http":
            yield name, switch(part, "mcp.http", line)
        else:
            yield name, number(part, f"mcp.{name}", line, _MOST[name])
