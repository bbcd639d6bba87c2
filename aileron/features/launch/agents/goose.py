"""goose: one variable names an additional configuration file, and others set the hosts of its providers.

Observed in goose 1.52, in order of precedence: variables, the user's C{config.yaml}, the files that
C{GOOSE_ADDITIONAL_CONFIG_FILES} names (the last one first), and the administrator's file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from aileron.features.launch import routing
from aileron.features.launch.agent import CALL_TIMEOUT_SECONDS, SERVER_NAME, Agent
from aileron.features.launch.editing import YAML
from aileron.features.launch.formats import parse_yaml
from aileron.features.launch.layers import AgentSettings, Location, SettingsSource, environment_variables, files
from aileron.features.launch.registration import GatewayAccess, Invocation, McpServer, Providers, Registration
from aileron.features.launch.servers import ServerSource

_ADDITIONAL = "GOOSE_ADDITIONAL_CONFIG_FILES"
_CONFIGURATION = Location("$GOOSE_PATH_ROOT/config", "$XDG_CONFIG_HOME/goose", "~/.config/goose", absolute=True)
_DATA = Location("$GOOSE_PATH_ROOT/data", "$XDG_DATA_HOME/goose", "~/.local/share/goose", absolute=True)
_STATE = Location("$GOOSE_PATH_ROOT/state", "$XDG_STATE_HOME/goose", "~/.local/state/goose", absolute=True)

_HOSTS = {"anthropic": "ANTHROPIC_HOST", "openai": "OPENAI_HOST"}
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ADDRESSES = {"anthropic": {"ANTHROPIC_HOST": ""}, "openai": {"OPENAI_HOST": "", "OPENAI_BASE_URL": "/v1"}}
"""For each provider, the settings for its address, with the end of the path in their values."""

_PATH, _PATHS = "OPENAI_BASE_PATH", ("v1/chat/completions", "v1/responses")
_FILE = "goose.yaml"
_RESUMING, _WITHOUT = frozenset(("-r", "--resume")), "--no-profile"


def _find_additional(invocation: Invocation) -> Iterator[Path]:
    named = invocation.environment.get(_ADDITIONAL, "").split(os.pathsep)
    yield from (Path(invocation.directory) / name for name in reversed(named) if name)


def _register(settings: AgentSettings, server: McpServer, _providers: Providers, directory: str) -> Registration:
    theirs = settings.environment.get(_ADDITIONAL, "")
    named = os.pathsep.join(part for part in (theirs, str(Path(directory) / _FILE)) if part)
    return Registration(
        # goose passes its whole environment to the server, so the file needs no token.
        {_ADDITIONAL: named, **server.environment},
        _remind(settings.invocation.arguments),
        files={_FILE: json.dumps({"extensions": {SERVER_NAME: _entry(server)}})},
    )


def _remind(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note if goose ignores Aileron's tools with these arguments, else an empty tuple."""
    if _RESUMING.intersection(arguments):
        return (
            "aileron: goose resumes a session with its former extensions; one started without a launch has no actions",
        )
    if _WITHOUT in arguments:
        return (f"aileron: goose offers no actions: {_WITHOUT} excludes extensions that are not arguments",)
    return ()


def _entry(server: McpServer) -> Mapping[str, object]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": SERVER_NAME,
        "description": "Actions that the user can approve",
        "cmd": server.command,
        "args": [],
        "timeout": CALL_TIMEOUT_SECONDS,
    }


def _route(settings: AgentSettings, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes all routable providers, with notes on the provider that the user chose."""
    if (reason := routing.find_unreadable(settings)) is not None:
        return routing.leave_alone("goose", reason)
    places = {name: _find_elsewhere(name, settings, gateway) for name in _HOSTS}
    through = [name for name, place in places.items() if place is None]
    variables = {name: text for provider in through for name, text in _variables(provider, settings, gateway)}
    past = routing.bypass_proxy(settings.environment, gateway.url, ports=False) if through else {}
    return Registration(variables={**variables, **past}, notes=_notes(_find_chosen(settings), places))


def _variables(provider: str, settings: AgentSettings, gateway: GatewayAccess) -> Iterator[tuple[str, str]]:
    # The key is in the path, as the provider anthropic has no custom headers.
    yield _HOSTS[provider], gateway.url_with_key
    if gateway.upstream(provider).injected and not settings.environment.get(_KEYS[provider]):
        yield _KEYS[provider], routing.STAND_IN_KEY


def _find_elsewhere(provider: str, settings: AgentSettings, gateway: GatewayAccess) -> str | None:
    """Return the place that sets an address other than the gateway's or the upstream's, or None if there is none."""
    for name, end in _ADDRESSES[provider].items():
        address = settings.find(name)
        if address is not None and not gateway.is_own(provider, address[1], end):
            return address[0]
    path = settings.find(_PATH) if provider == "openai" else None
    return path[0] if path is not None and path[1].strip("/") not in _PATHS else None


def _find_chosen(settings: AgentSettings) -> str | None:
    """Return the provider that the user chose, or None if none."""
    named = settings.find("GOOSE_PROVIDER")
    return next(settings.invocation.option("--provider"), None if named is None else named[1])


def _notes(chosen: str | None, places: Mapping[str, str | None]) -> tuple[str, ...]:
    asked = {name: place for name, place in places.items() if chosen in (None, name)}
    kept = {name: routing.explain_elsewhere(place, name) for name, place in asked.items() if place is not None}
    if chosen is not None and not asked:
        kept = {chosen: f"the gateway supports only {' and '.join(places)}"}
    return routing.note_routes("goose", (name for name, place in asked.items() if place is None), kept)


AGENT = Agent(
    name="goose",
    sources=(
        environment_variables,
        SettingsSource(files(_CONFIGURATION, "config.yaml"), parse_yaml),
        SettingsSource(_find_additional, parse_yaml),
        SettingsSource(files(Location("/etc/goose"), "config.yaml"), parse_yaml),
    ),
    servers=(ServerSource(files(_CONFIGURATION, "config.yaml"), (("extensions",),), YAML),),
    unique="extensions",
    # Excluded: schedules with their recipes, and apps, which goose starts by itself later.
    own=(_DATA / "sessions", _STATE / "logs"),
    settings=(_CONFIGURATION, _DATA, _STATE),
    # configure offers to save the variables' values: the gateway's address with the key, and the stand-in key.
    commands=frozenset(("configure",)),
    alone="it would keep settings of this session.",
    draws=lambda _arguments: False,
    register=_register,
    route=_route,
)
