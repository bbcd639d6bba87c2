"""pi: an extension of our own is named to it in an argument; it takes its secrets from the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from zope.interface import implementer

from aileron.errors import InvalidRequest
from aileron.values import JSON, visible

from .iagent import Gateway, IAgent, Invocation, McpServer, Register, Registration
from .pi_routes import routed
from .pi_settings import Settings, home_of, read_settings

SERVER_NAME = "aileron"

_CALL_TIMEOUT_SECONDS = 3_600  # its default, a minute, is shorter than an approval
_FILE = "aileron.ts"
_EXTENSION = "// Written by aileron launch, for as long as pi runs.\nexport default function (pi: any) {{\n{}}}\n"

_COMMANDS = frozenset("auth config install list mcp remove uninstall update".split())
"""They are commands as pi's first argument only, and know neither extensions nor tools."""

_SCREENLESS = frozenset("-p --print --mode --export --list-models -h --help -v --version".split())
"""Wherever they stand."""


@implementer(IAgent)
@frozen
class Pi:
    """The agent of that name."""

    name: str = "pi"
    program: str = "pi"
    wait_seconds: int = 45

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Its own screen opens unless something is asked of it that has none."""
        return not _is_command(arguments) and not _SCREENLESS.intersection(arguments)

    def prepare(self, invocation: Invocation) -> Register:
        """Read where the user has said something of servers and providers; all of it is kept."""
        settings = read_settings(invocation)
        _refuse_namesake(settings)

        def register(server: McpServer, gateway: Gateway | None, directory: str) -> Registration:
            if _is_command(invocation.arguments):
                return Registration({})
            routes = routed(settings, gateway)
            calls = [_call("registerMcpServer", SERVER_NAME, _entry(server))]
            calls += [_call("registerProvider", name, entry) for name, entry in routes.providers.items()]
            return Registration(
                {**server.environment, **routes.variables},
                routes.notes,
                ("-e", str(Path(directory) / _FILE)),
                {_FILE: _EXTENSION.format("".join(calls))},
            )

        return register

    def own_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        usual = home_of(environment) / "sessions"
        return (environment.get("PI_CODING_AGENT_SESSION_DIR") or str(usual),)

    def settings_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        return (str(home_of(environment)),)


def _is_command(arguments: tuple[str, ...]) -> bool:
    return bool(_COMMANDS.intersection(arguments[:1]))


def _refuse_namesake(settings: Settings) -> None:
    """Of two servers of one name pi takes the user's.

    :raises InvalidRequest: there is one.
    """
    for place in settings.servers:
        if SERVER_NAME in place.part("mcpServers"):
            raise InvalidRequest(
                f"{visible(place.name)} has a server named {SERVER_NAME}, which would be used instead of the "
                "launch's: remove it there, or give it another name."
            )


def _call(function: str, name: str, entry: JSON) -> str:
    return f"  pi.{function}({json.dumps(name)}, {json.dumps(entry)});\n"


def _entry(server: McpServer) -> JSON:
    return {
        "command": server.command,
        "args": [],
        # By reference: pi hands on nothing of its environment but what is named.
        "env": {name: f"${{{name}}}" for name in server.environment},
        "exposure": "direct",
        "timeout": _CALL_TIMEOUT_SECONDS,
    }
