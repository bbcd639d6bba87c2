"""MCP over HTTP, where it is wanted."""

from __future__ import annotations

from typing import Any

from aileron.interfaces import IMcpService
from aileron.values import McpSettings


def make_mcp(reactor: Any, settings: McpSettings) -> IMcpService | None:
    """What serves it; L{None}: nobody does, and nothing was loaded for it."""
    if not settings.http:
        return None
    from aileron.mcp import over_http

    return over_http(reactor, settings)
