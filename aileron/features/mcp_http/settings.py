"""The key C{mcp} of C{config.yaml}: MCP over HTTP."""

from __future__ import annotations

from aileron.base.yaml_keys import Key, Keys, WholeNumber, section, switch

from .values import McpSettings

_MCP = McpSettings()
_OF_MCP: Keys = {
    "http": Key(switch, "whether agents reach their tools over HTTP as well, at `/mcp` of their site", _MCP.http),
    "sessions": Key(WholeNumber(1000), "how many MCP sessions one agent may have there at once", _MCP.sessions),
    "idle_seconds": Key(WholeNumber(86_400), "seconds without a request until such a session ends", _MCP.idle_seconds),
    "listed_actions": Key(WholeNumber(1000), "how many actions are listed there at most", _MCP.listed_actions),
}
MCP = section(McpSettings, _OF_MCP)
