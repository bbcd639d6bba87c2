"""Codex: everything goes into arguments that override its settings, and what is secret into variables they name."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from zope.interface import implementer

from . import codex_arguments
from .bypass import unproxied
from .codex_routes import Routes, routed
from .codex_settings import BUILT_IN, Settings, directory, read_settings
from .iagent import Gateway, IAgent, Invocation, McpServer, Register, Registration
from .toml_values import TomlValue, overriding

SERVER_NAME = "aileron"
_OTHER_NAME = "aileron_session"

_CALL_TIMEOUT_SECONDS = 3600  # its default, five minutes, is shorter than many an approval
_START_TIMEOUT_SECONDS = 60
_OWN = ("archived_sessions", "log", "sessions")
# Else it never learns of an action that is added; it calls that unfinished, and warns of it at each start.
_LISTS_ANEW = (
    *overriding("features.mcp_tool_list_changed", True),
    *overriding("suppress_unstable_features_warning", True),
)


@implementer(IAgent)
@frozen
class Codex:
    """The agent of that name."""

    name: str = "codex"
    program: str = "codex"
    wait_seconds: int = 45

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Its own screen opens unless a command is named that has none."""
        return codex_arguments.full_screen(arguments)

    def prepare(self, invocation: Invocation) -> Register:
        """Read what says where its models are, and which tool servers the user has."""
        settings = read_settings(invocation)
        steered = codex_arguments.steering(invocation.arguments)

        def register(server: McpServer, gateway: Gateway | None, _directory: str) -> Registration:
            routes = routed(settings, gateway, steered=steered)
            past = unproxied(invocation.environment, gateway.url, ports=False) if gateway and routes.arguments else {}
            return Registration(
                {**server.environment, **routes.variables, **past},
                (*_name_note(settings), *routes.notes, *_resume_note(invocation, settings, routes)),
                (*overriding(f"mcp_servers.{_server_name(settings)}", _entry(server)), *_LISTS_ANEW, *routes.arguments),
            )

        return register

    def own_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}; what else lies beside them are settings, and what a later session would start."""
        return tuple(str(directory(environment) / name) for name in _OWN)

    def settings_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        return (str(directory(environment)),)


def _server_name(settings: Settings) -> str:
    # What the user has under our name would be mixed with ours, or could not be.
    return _OTHER_NAME if SERVER_NAME in settings.servers else SERVER_NAME


def _name_note(settings: Settings) -> tuple[str, ...]:
    if SERVER_NAME not in settings.servers:
        return ()
    return (f"aileron: you have a tool server {SERVER_NAME} of your own, so this session's is {_OTHER_NAME}",)


def _resume_note(invocation: Invocation, settings: Settings, routes: Routes) -> tuple[str, ...]:
    moved = bool(routes.arguments) and settings.provider == BUILT_IN
    if not moved or not codex_arguments.resuming(invocation.arguments):
        return ()
    return ("aileron: Codex resumes only what began through the gateway, too; say fork for others, or --no-gateway",)


def _entry(server: McpServer) -> TomlValue:
    return {
        "command": server.command,
        "args": (),
        "env_vars": sorted(server.environment),
        "enabled": True,
        "required": True,  # else it goes on without, after a second
        "default_tools_approval_mode": "approve",  # else it refuses them, or asks before we do
        "tool_timeout_sec": _CALL_TIMEOUT_SECONDS,
        "startup_timeout_sec": _START_TIMEOUT_SECONDS,
    }
