"""MCP over HTTP: agents reach their tools at C{/mcp} of the agent site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aileron.features.feature import Feature

if TYPE_CHECKING:
    from aileron.features.core import Core
    from aileron.features.feature import RunningFeature


class McpHttpFeature(Feature):
    """The feature that serves Aileron's tools by MCP (the Model Context Protocol) over HTTP."""

    name = "mcp_http"
    summary = "Serves MCP over HTTP, at /mcp of the agent site."

    def settings(self) -> Mapping[str, Any]:
        from .settings import MCP

        return {"mcp": MCP}

    async def start(self, core: Core) -> RunningFeature | None:
        settings = core.settings.get("mcp")
        if settings is None or not settings.http:
            return None
        from .running import start_mcp

        return start_mcp(core, settings)


FEATURE = McpHttpFeature()
