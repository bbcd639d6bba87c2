"""OpenCode: everything goes into one variable, which it merges over the user's own configuration files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from zope.interface import implementer

from aileron.errors import InvalidRequest
from aileron.values import JSON, plain

from .bypass import unproxied
from .iagent import Gateway, IAgent, Invocation, McpServer, Register, Registration
from .jsonc import loads_jsonc
from .opencode_routes import routed
from .opencode_settings import CONFIGURATION, read_settings

SERVER_NAME = "aileron"

_CALL_TIMEOUT_MILLISECONDS = 3_600_000  # its default, a minute, is shorter than an approval

_SCREENLESS = frozenset(
    "acp agent auth completion debug export github import mcp models pr run serve session stats uninstall upgrade "
    "web --help -h --version -v".split()
)

_OWN = (("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state"), ("XDG_CACHE_HOME", ".cache"))


@implementer(IAgent)
@frozen
class OpenCode:
    """The agent of that name."""

    name: str = "opencode"
    program: str = "opencode"
    wait_seconds: int = 45

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Its own screen opens unless a command is named that has none."""
        return not _SCREENLESS.intersection(arguments[:1])

    def prepare(self, invocation: Invocation) -> Register:
        """Read the user's own C{OPENCODE_CONFIG_CONTENT}, which is kept, and what else says where providers are."""
        configuration = _configuration(invocation.environment.get(CONFIGURATION, ""))
        servers = _object(configuration.get("mcp", {}), f"mcp in {CONFIGURATION}")
        settings = read_settings(invocation)

        def register(server: McpServer, gateway: Gateway | None, _directory: str) -> Registration:
            merged: dict[str, JSON] = {**configuration, "mcp": {**servers, SERVER_NAME: _entry(server)}}
            routes = routed(settings, configuration, gateway)
            past: Mapping[str, str] = {}
            if gateway is not None and routes.providers:
                merged["provider"] = routes.providers
                past = unproxied(invocation.environment, gateway.url)
            return Registration({CONFIGURATION: json.dumps(plain(merged)), **past}, routes.notes)

        return register

    def own_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        return tuple(_directory(environment, name, usual) for name, usual in _OWN)

    def settings_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}; it writes a C{.gitignore} there at each start, and does not start if it cannot."""
        return (_directory(environment, "XDG_CONFIG_HOME", ".config"),)


def _directory(environment: Mapping[str, str], name: str, usual: str) -> str:
    return str(Path(environment.get(name) or Path(environment.get("HOME", "/")) / usual) / "opencode")


def _entry(server: McpServer) -> JSON:
    return {
        "type": "local",
        "command": [server.command],
        "enabled": True,
        "timeout": _CALL_TIMEOUT_MILLISECONDS,
        "environment": dict(server.environment),
    }


def _configuration(text: str) -> Mapping[str, JSON]:
    if not text.strip():
        return {}
    try:
        value = loads_jsonc(text)
    except ValueError as error:
        # Not the text itself: it may hold the user's keys.
        raise InvalidRequest(f"{CONFIGURATION} is set but is no JSON ({error}): correct or unset it.") from None
    return _object(value, CONFIGURATION)


def _object(value: JSON, what: str) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{what} is set but is no object: correct or unset it.")
    return value
