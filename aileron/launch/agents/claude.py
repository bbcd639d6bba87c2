"""Claude Code: its tool server comes by a flag that names variables, and these hold the secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from zope.interface import implementer

from .claude_routes import routed
from .claude_settings import own_directory, read_settings
from .iagent import Gateway, IAgent, Invocation, McpServer, Register, Registration

SERVER_NAME = "aileron"

_CALL_TIMEOUT_MILLISECONDS = 3_600_000  # also ends half an hour's patience with a server that says nothing

# Behind another argument it takes the shorter of them for prompts.
_COMMANDS = frozenset(
    "agents attach auth auto-mode bridge daemon doctor gateway import install kill logs mcp plugin plugins purge rc "
    "remote remote-control respawn rm sandbox self-hosted-runner setup-token stop sync ultrareview update upgrade "
    "--help -h --version -v".split()
)
_HEADLESS = frozenset(("-p", "--print"))
_BACKGROUND = frozenset(("--bg", "--background"))

# Not what later sessions source or start, outside of a sandbox too: session-env, shell-snapshots, jobs.
_OWN = ("file-history", "plans", "projects", "tasks", "todos")


@implementer(IAgent)
@frozen
class Claude:
    """The agent of that name."""

    name: str = "claude"
    program: str = "claude"
    wait_seconds: int = 45

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Its own screen opens unless it is to print, or a command of its own is named."""
        return not (_is_command(arguments) or _HEADLESS.intersection(arguments))

    def prepare(self, invocation: Invocation) -> Register:
        """Read what the user has set of where its traffic goes; nothing of it is in the way of our tools."""
        settings = read_settings(invocation)

        def register(server: McpServer, gateway: Gateway | None, _directory: str) -> Registration:
            if _is_command(invocation.arguments):
                return Registration({}, (_alone(invocation.arguments[0]),))
            routes = routed(settings, gateway)
            # With a space they would take the user's own arguments for more of theirs.
            ours = (f"--mcp-config={json.dumps(_configuration(server))}", f"--allowedTools=mcp__{SERVER_NAME}__*")
            notes = (*routes.notes, *_of_background(invocation.arguments))
            return Registration({**server.environment, **routes.variables}, notes, (*ours, *routes.arguments))

        return register

    def own_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}; what else lies beside them are settings, and programs that it starts."""
        cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "/")) / ".cache"
        directory = own_directory(environment)
        return (*(str(directory / name) for name in _OWN), str(Path(cache) / "claude-cli-nodejs"))

    def settings_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        return (str(own_directory(environment)),)


def _is_command(arguments: tuple[str, ...]) -> bool:
    return bool(_COMMANDS.intersection(arguments[:1]))


def _configuration(server: McpServer) -> Mapping[str, object]:
    """With C{alwaysLoad} the tools are before the model, not behind a search for tools."""
    entry = {
        "type": "stdio",
        "command": server.command,
        "args": [],
        "env": {name: f"${{{name}}}" for name in server.environment},
        "alwaysLoad": True,
        "timeout": _CALL_TIMEOUT_MILLISECONDS,
    }
    return {"mcpServers": {SERVER_NAME: entry}}


def _alone(command: str) -> str:
    return f"aileron: claude {command} runs by itself: it gets no tools, and is not sent through the gateway."


def _of_background(arguments: tuple[str, ...]) -> tuple[str, ...]:
    if not _BACKGROUND.intersection(arguments):
        return ()
    return (
        "aileron: what claude does in the background outlives this launch, and then has neither tools nor gateway.",
    )
