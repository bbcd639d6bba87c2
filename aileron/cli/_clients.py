"""C{aileron mcp}: Aileron's tools in clients that C{aileron launch} does not know."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from . import options as _options
from .context import CliContext, pass_cli
from .output import note, say_json

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
SERVER_NAME = "aileron"
_CALL_MILLISECONDS = 3_600_000


Entry = Mapping[str, Any]
"""The command, arguments and environment that start C{aileron-mcp}, in the form that most clients use."""


@frozen
class ClientProgram:
    """A program that starts MCP servers.

    :ivar name: the name under which the operator allows the program.
    :ivar places: lines that name the files in which the configuration belongs.
    :ivar text: returns the text of the configuration.
    """

    name: str
    places: tuple[str, ...]
    text: Callable[[Entry], str]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2)


def _usual(entry: Entry) -> str:
    return _json({"mcpServers": {SERVER_NAME: entry}})


def _continue(entry: Entry) -> str:
    """Return the configuration of an MCP server as YAML, with strings quoted as in JSON."""
    lines = [
        "mcpServers:",
        f"  - name: {SERVER_NAME}",
        "    type: stdio",
        f"    command: {json.dumps(entry['command'])}",
    ]
    lines += ["    env:", *(f"      {name}: {json.dumps(text)}" for name, text in entry["env"].items())]
    return "\n".join(lines)


def _kilo(entry: Entry) -> str:
    server = {
        "type": "local",
        "command": [entry["command"], *entry["args"]],
        "environment": entry["env"],
        "enabled": True,
        "timeout": _CALL_MILLISECONDS,
    }
    return _json({"mcp": {SERVER_NAME: server}})


CLIENTS: Mapping[str, ClientProgram] = {
    each.name: each
    for each in (
        ClientProgram("cursor", ("~/.cursor/mcp.json, for all your projects", ".cursor/mcp.json, for one"), _usual),
        ClientProgram(
            "vscode",
            ("your user mcp.json (the command 'MCP: Open User Configuration')", ".vscode/mcp.json, for one workspace"),
            lambda entry: _json({"servers": {SERVER_NAME: {"type": "stdio", **entry}}}),
        ),
        ClientProgram(
            "zed",
            ("settings.json (the command 'zed: open settings')",),
            lambda entry: _json({"context_servers": {SERVER_NAME: {"source": "custom", **entry}}}),
        ),
        ClientProgram(
            "gemini",
            ("~/.gemini/settings.json", ".gemini/settings.json, for one project"),
            # In an untrusted folder it offers no tools if it cannot ask a person. Its own limit is ten minutes.
            lambda entry: _usual({**entry, "timeout": _CALL_MILLISECONDS, "trust": True}),
        ),
        ClientProgram(
            "qwen",
            ("~/.qwen/settings.json", ".qwen/settings.json, for one project"),
            # Otherwise the model finds the tools only by a search.
            lambda entry: _usual({**entry, "timeout": _CALL_MILLISECONDS, "trust": True, "alwaysLoadTools": True}),
        ),
        ClientProgram(
            "copilot",
            ("~/.copilot/mcp-config.json", "or a file that you name: copilot --additional-mcp-config @FILE"),
            lambda entry: _usual({"type": "local", **entry, "tools": ["*"], "timeout": _CALL_MILLISECONDS}),
        ),
        ClientProgram(
            "cline",
            ("~/.cline/data/settings/cline_mcp_settings.json",),
            lambda entry: _usual({"transport": {"type": "stdio", **entry}}),
        ),
        ClientProgram("kilo", ("~/.config/kilo/kilo.json", "kilo.json, for one project"), _kilo),
        ClientProgram("continue", ("~/.continue/config.yaml",), _continue),
        ClientProgram(
            "claude-desktop",
            (
                "claude_desktop_config.json (Settings, Developer, Edit Config)",
                "on macOS in ~/Library/Application Support/Claude, on Linux in ~/.config/Claude",
            ),
            _usual,
        ),
        ClientProgram(
            "generic", ("the client's configuration of MCP servers over stdio (this is the usual format)",), _usual
        ),
    )
}
"""The clients by the name under which the operator allows them."""


@click.group()
def mcp() -> None:
    """Use Aileron's tools in an MCP client that aileron launch does not support."""


@mcp.command("config")
@click.argument("client", type=click.Choice(sorted(CLIENTS)))
@click.option("--name", help="The name under which you allow it, if not CLIENT.")
@_options.as_json
@pass_cli
def config(cli: CliContext, client: str, name: str | None, as_json: bool) -> None:
    """Print the configuration for CLIENT, and explain how to allow it. It contains no key."""
    chosen = CLIENTS[client]
    called = name or chosen.name
    if not _NAME.fullmatch(called):
        raise click.UsageError("A name has at most 32 characters: a-z, 0-9 and -.")
    text = chosen.text({"command": _command(), "args": [], "env": _variables(cli, called)})
    if as_json:
        say_json({"client": called, "places": list(chosen.places), "text": text})
        return
    click.echo(text)
    note("")
    note("Add this to:")
    for place in chosen.places:
        note("  {place}", place=place)
    note("It contains no key. The client connects by its name, once you allow it:")
    note("  1. Add to {path}: clients: [{name}]", path=cli.home.config, name=called)
    note("  2. aileron config trust")
    note("  3. aileron daemon stop, then aileron vault unlock (changes apply after a restart)")
    note("aileron-mcp then opens a session that ends with the client. List sessions: aileron session list --live")


def _command() -> str:
    beside = Path(sys.executable).absolute().parent / "aileron-mcp"
    return str(beside) if os.access(beside, os.X_OK) else "aileron-mcp"


def _variables(cli: CliContext, name: str) -> dict[str, str]:
    home = cli.environ.get("AILERON_HOME")
    return {"AILERON_CLIENT": name, **({"AILERON_HOME": home} if home else {})}
