"""What goes into the configuration of which client, and where that lies; it holds no key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

SERVER_NAME = "aileron"
_CALL_MILLISECONDS = 3_600_000


@frozen
class Server:
    """How C{aileron-mcp} is started.

    :ivar command: its path.
    :ivar variables: what it needs; no secret.
    """

    command: str
    variables: Mapping[str, str]

    def entry(self) -> dict[str, Any]:
        """As most clients write it."""
        return {"command": self.command, "args": [], "env": dict(self.variables)}


@frozen
class Client:
    """A program that starts MCP servers.

    :ivar name: by which it is let in.
    :ivar places: where the text goes, a line each.
    :ivar text: the text.
    """

    name: str
    places: tuple[str, ...]
    text: Callable[[Server], str]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2)


def _usual(server: Server) -> str:
    return _json({"mcpServers": {SERVER_NAME: server.entry()}})


def _vscode(server: Server) -> str:
    return _json({"servers": {SERVER_NAME: {"type": "stdio", **server.entry()}}})


def _zed(server: Server) -> str:
    return _json({"context_servers": {SERVER_NAME: {"source": "custom", **server.entry()}}})


def _gemini(server: Server) -> str:
    # Not trusted, in its words: it asks before a call of its own accord.  Its own limit is ten minutes.
    entry = {**server.entry(), "timeout": _CALL_MILLISECONDS, "trust": False}
    return _json({"mcpServers": {SERVER_NAME: entry}})


def _continue(server: Server) -> str:
    """YAML, whose quoted strings are JSON's."""
    lines = ["mcpServers:", f"  - name: {SERVER_NAME}", "    type: stdio", f"    command: {json.dumps(server.command)}"]
    lines += ["    env:", *(f"      {name}: {json.dumps(text)}" for name, text in server.variables.items())]
    return "\n".join(lines)


CLIENTS: Mapping[str, Client] = {
    each.name: each
    for each in (
        Client("cursor", ("~/.cursor/mcp.json, for all your projects", ".cursor/mcp.json, for one"), _usual),
        Client(
            "vscode",
            ("your user mcp.json (the command 'MCP: Open User Configuration')", ".vscode/mcp.json, for one workspace"),
            _vscode,
        ),
        Client("zed", ("settings.json (the command 'zed: open settings')",), _zed),
        Client("gemini", ("~/.gemini/settings.json", ".gemini/settings.json, for one project"), _gemini),
        Client("continue", ("~/.continue/config.yaml",), _continue),
        Client(
            "claude-desktop",
            (
                "claude_desktop_config.json (Settings, Developer, Edit Config)",
                "on macOS in ~/Library/Application Support/Claude, on Linux in ~/.config/Claude",
            ),
            _usual,
        ),
        Client("generic", ("wherever it is told of MCP servers over stdio; this is the usual form",), _usual),
    )
}
"""By the name that the operator lets them in by."""
