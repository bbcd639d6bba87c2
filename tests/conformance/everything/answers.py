"""What all of its tools are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import mcp.types as t
from mcp.server.context import ServerRequestContext

Context: TypeAlias = ServerRequestContext[Any, Any]
ToolAnswer: TypeAlias = t.CallToolResult | t.InputRequiredResult
Tool: TypeAlias = Callable[[Context, t.CallToolRequestParams], Awaitable[ToolAnswer]]
Tools: TypeAlias = Mapping[str, Tool]

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def result(*content: t.ContentBlock | str, is_error: bool = False) -> t.CallToolResult:
    """A tool's whole answer."""
    blocks = [t.TextContent(text=each) if isinstance(each, str) else each for each in content]
    return t.CallToolResult(content=blocks, is_error=is_error)


def image() -> t.ImageContent:
    """A picture of one dot."""
    return t.ImageContent(data=PICTURE, mime_type="image/png")


def embedded(uri: str, kind: str, text: str) -> t.EmbeddedResource:
    """A document within an answer."""
    return t.EmbeddedResource(resource=t.TextResourceContents(uri=uri, mime_type=kind, text=text))


def form(message: str, **properties: Mapping[str, Any]) -> t.ElicitRequest:
    """Ask the user for all of these."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return t.ElicitRequest(params=t.ElicitRequestFormParams(message=message, requested_schema=schema))
