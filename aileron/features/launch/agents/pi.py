"""pi: an argument names an extension written by the launch, which reads its secrets from the environment.

Observed in pi 0.99: it reads C{models.json}, C{auth.json}, C{mcp.json} and C{settings.json} in its own directory, and
a project's C{.pi/mcp.json}.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import evolve

from aileron.base.json import JSON
from aileron.features.launch import routing
from aileron.features.launch.agent import CALL_TIMEOUT_SECONDS, SERVER_NAME, Agent
from aileron.features.launch.layers import AgentSettings, Location, SettingsSource, Topic, files, part_of
from aileron.features.launch.registration import (
    GatewayAccess,
    McpServer,
    PromptAccess,
    Providers,
    Registration,
    WakeAccess,
)
from aileron.features.launch.resuming import Resumption
from aileron.features.prompts.programs import PI_EXTENSION
from aileron.features.wake.programs import MODE, PI_WAKE, name_mode

_DIRECTORY = Location("$PI_CODING_AGENT_DIR", "~/.pi/agent", tilde=True)
_SESSIONS = Location(
    "$PI_CODING_AGENT_SESSION_DIR", "$PI_CODING_AGENT_DIR/sessions", "~/.pi/agent/sessions", tilde=True
)
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
}
_ENDS = {"anthropic": "", "openai": "/v1"}
"""For each provider, the end of the path of a base URL."""

_FILE = "aileron.ts"
_EXTENSION = "// Written by aileron launch, for as long as pi runs.\nexport default function (pi: any) {{\n{}}}\n"

# Commands only as first argument. They support neither extensions nor tools.
_COMMANDS = frozenset("auth config install list mcp remove uninstall update".split())
# At any position.
_SCREENLESS = frozenset("-p --print --mode --export --list-models -h --help -v --version".split())


def _register(settings: AgentSettings, server: McpServer, providers: Providers, directory: str) -> Registration:
    calls = [_call("registerMcpServer", SERVER_NAME, _entry(server))]
    calls += [_call("registerProvider", name, entry) for name, entry in providers.items()]
    return Registration(
        server.environment,
        arguments=("-e", str(Path(directory) / _FILE)),
        files={_FILE: _EXTENSION.format("".join(calls))},
    )


def _call(function: str, name: str, entry: JSON) -> str:
    return f"  pi.{function}({json.dumps(name)}, {json.dumps(entry)});\n"


def _entry(server: McpServer) -> JSON:
    return {
        "command": server.command,
        "args": [],
        # By reference: pi passes on only the variables that are named.
        "env": {name: f"${{{name}}}" for name in server.environment},
        "exposure": "direct",
        "timeout": CALL_TIMEOUT_SECONDS,
    }


def _route(settings: AgentSettings, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes all providers through the gateway, except those with another address.

    If the addresses cannot be determined, the registration has only a note that says why.
    """
    if (reason := routing.find_unreadable(settings.about(Topic.SETTINGS), "providers")) is not None:
        return routing.leave_alone("pi", reason)
    places = {name: _find_elsewhere(name, settings, gateway) for name in _KEYS}
    # pi does not offer providers without a key, so all can be routed. The note names only those that are used.
    through = [name for name, place in places.items() if place is None]
    used = [name for name in through if _is_used(name, settings, gateway)]
    kept = {name: routing.explain_elsewhere(place, name) for name, place in places.items() if place is not None}
    return Registration(
        dict(_variables(through, settings, gateway)),
        providers={name: _provider(name, gateway) for name in through},
        notes=routing.note_routes("pi", used, kept),
    )


def _find_elsewhere(name: str, settings: AgentSettings, gateway: GatewayAccess) -> str | None:
    """Return the file that sets an address other than the gateway's or the upstream's, or None if there is none."""
    for place, value in settings.about(Topic.SETTINGS).values("providers", name):
        entry = part_of(value)
        models = entry.get("models")
        parts = [entry, *map(part_of, models if isinstance(models, list) else ())]
        addresses = [str(each["baseUrl"]) for each in parts if each.get("baseUrl") is not None]
        if "oauth" in entry or not all(gateway.is_own(name, address, _ENDS[name]) for address in addresses):
            return place
    return None


def _is_used(name: str, settings: AgentSettings, gateway: GatewayAccess) -> bool:
    """Return whether a provider is used: the user has an entry or a key for it, or the gateway has a key for it."""
    named = any(settings.about(Topic.SETTINGS).values("providers", name))
    return named or gateway.upstream(name).injected or _has_key(name, settings)


def _has_key(name: str, settings: AgentSettings) -> bool:
    logged_in = any(settings.about(Topic.LOGINS).values(name))
    return logged_in or any(settings.environment.get(variable) for variable in _KEYS[name])


def _provider(name: str, gateway: GatewayAccess) -> JSON:
    return {"baseUrl": f"{gateway.url}{_ENDS[name]}", "headers": {routing.KEY_HEADER: f"${routing.KEY_VARIABLE}"}}


def _variables(through: list[str], settings: AgentSettings, gateway: GatewayAccess) -> Iterator[tuple[str, str]]:
    if through:
        yield routing.KEY_VARIABLE, gateway.key
        yield from routing.bypass_proxy({**_proxy(settings), **settings.environment}, gateway.url).items()
    for name in through:
        if gateway.upstream(name).injected and not _has_key(name, settings):
            yield _KEYS[name][0], routing.STAND_IN_KEY


def _proxy(settings: AgentSettings) -> Mapping[str, str]:
    """Return the proxy in pi's own settings as the variable that pi sets from it; empty if there is none."""
    proxy = settings.about(Topic.OTHERS).find("httpProxy")
    return {} if proxy is None else {"HTTP_PROXY": proxy[1]}


def _hook(_settings: AgentSettings, prompts: PromptAccess, made: Registration, _directory: str) -> Registration:
    """Return the registration with an extension that has the rules for prompts checked before each call of a tool.

    pi has no permission prompts of its own. If there are no such rules, return the registration with a note.
    """
    if not prompts.checks:
        note = "aileron: pi has no permission prompts: add rules that ask (prompts.rules in config.yaml)."
        return evolve(made, notes=(*made.notes, note))
    return evolve(made, arguments=(*made.arguments, "-e", str(PI_EXTENSION)))


def _wake(_settings: AgentSettings, _wake: WakeAccess, made: Registration, waits: bool) -> Registration:
    """Return the registration with an extension that starts a turn with an outcome."""
    variables = {**made.variables, MODE: name_mode(waits=waits)}
    return evolve(made, arguments=(*made.arguments, "-e", str(PI_WAKE)), variables=variables)


_RESUMPTION = Resumption(
    flags=frozenset(("--no-tools", "--verbose", "--offline")),
    options=frozenset(("--provider", "--model", "--thinking", "--tools", "--session-dir", "--mode")),
    flags_replaced=frozenset(("-p", "--print", "-c", "--continue")),
    options_replaced=frozenset(("--session", "--session-id")),
    arguments=lambda kept, conversation, message: (*kept, "--print", "--session", conversation, message),
)

AGENT = Agent(
    name="pi",
    sources=(
        SettingsSource(files(_DIRECTORY, "models.json")),
        SettingsSource(files(_DIRECTORY, "auth.json"), topic=Topic.LOGINS),
        SettingsSource(files(_DIRECTORY, "mcp.json"), topic=Topic.SERVERS),
        SettingsSource(files(Location(".pi"), "mcp.json"), topic=Topic.SERVERS),
        SettingsSource(files(_DIRECTORY, "settings.json"), topic=Topic.OTHERS),
    ),
    unique="mcpServers",
    own=(_SESSIONS,),
    settings=(_DIRECTORY,),
    commands=_COMMANDS,
    draws=lambda arguments: not _SCREENLESS.intersection(arguments),
    register=_register,
    route=_route,
    hook=_hook,
    wake=_wake,
    resumption=_RESUMPTION,
)
