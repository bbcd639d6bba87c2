"""Claude Code: a flag registers the tool server and refers to variables, which hold the secrets.

Observed in Claude Code 2.1: C{env} in its settings overrides the environment in which it is started. It reads settings
from C{.claude.json} and C{settings.json} in its own directory, from C{.claude} in the working directory and in the
repository's root, from C{--settings}, and from the administrator's files. A launch reads all directories between the
working directory and the root too, to be cautious. If one of them sets another address for a provider, requests to
this provider do not go through the gateway.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import evolve

from aileron.client import TOKEN
from aileron.features.launch import routing
from aileron.features.launch.agent import CALL_TIMEOUT_SECONDS, SERVER_NAME, Agent
from aileron.features.launch.formats import read_text, to_text
from aileron.features.launch.layers import (
    AgentSettings,
    Location,
    SettingsLayer,
    SettingsSource,
    Text,
    Topic,
    environment_variables,
    files,
    project_files,
)
from aileron.features.launch.registration import (
    GatewayAccess,
    Invocation,
    McpServer,
    PromptAccess,
    Providers,
    Registration,
    WakeAccess,
)
from aileron.features.launch.resuming import Resumption
from aileron.features.launch.servers import HERE, ServerSource
from aileron.features.wake.programs import hook_command

_BASE_URL = "ANTHROPIC_BASE_URL"
_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"
_AUTH_TOKEN = "ANTHROPIC_AUTH_TOKEN"
_ADDRESSES = (_BASE_URL, "CLAUDE_CODE_API_BASE_URL")
_KEYS = (
    "ANTHROPIC_API_KEY",
    _AUTH_TOKEN,
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_FEDERATION_RULE_ID",
)
_LOGINS = ("apiKeyHelper", "oauthAccount", "primaryApiKey")
_OTHERS = tuple(
    f"CLAUDE_CODE_USE_{name}"
    for name in ("BEDROCK", "VERTEX", "FOUNDRY", "ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD", "MANTLE", "GATEWAY")
)
_SOCKET = "ANTHROPIC_UNIX_SOCKET"
_YES = ("1", "true", "yes", "on")

_DIRECTORY = Location("$CLAUDE_CONFIG_DIR", "~/.claude")
_SHARED = Location("$ANTHROPIC_CONFIG_DIR", "$XDG_CONFIG_HOME/anthropic", "~/.config/anthropic")
_NAMES = ("settings.json", "settings.local.json")
_MANAGED = ("managed-settings.json", "managed-settings.d/*.json")
_OPTION = "--settings"

# Excluded: session-env, shell-snapshots and jobs, which later sessions source or start, even outside a sandbox.
_OWN = ("file-history", "plans", "projects", "tasks", "todos")

# Commands only as first argument; after another argument, the shorter ones are prompts.
_COMMANDS = frozenset(
    "agents attach auth auto-mode bridge daemon doctor gateway import install kill logs mcp plugin plugins purge rc "
    "remote remote-control respawn rm sandbox self-hosted-runner setup-token stop sync ultrareview update upgrade "
    "--help -h --version -v".split()
)
_HEADLESS = frozenset(("-p", "--print"))
_BRIEF_SECONDS = 10
_WAKE_SECONDS = 86_400
_ENDS = ("PostToolUse", "PostToolUseFailure", "PermissionDenied", "UserPromptSubmit")
"""The events after which a dialog for permission is no longer open."""
_BACKGROUND = frozenset(("--bg", "--background"))


def _find_options(invocation: Invocation) -> Iterator[Text]:
    """Yield the settings that follow C{--settings}: the JSON in the argument, or the text of the file that it names.

    For a file that cannot be read, yield an empty text, which makes the layer unreadable.
    """
    for value in invocation.option(_OPTION):
        if value.lstrip().startswith("{") or len(value) > 4096 or "\0" in value:
            yield Text(_OPTION, value)
        else:
            try:
                text = read_text(Path(invocation.directory) / value)
            except ValueError:
                text = None
            yield Text(_OPTION, text or "")  # an empty text is not JSON, so the layer counts as unreadable


def _register(settings: AgentSettings, server: McpServer, _providers: Providers, _directory: str) -> Registration:
    # With "=", as after a space these options would consume the user's own arguments.
    ours = (f"--mcp-config={json.dumps(_configuration(server))}", f"--allowedTools=mcp__{SERVER_NAME}__*")
    lasting = "outlives this launch, and then has no tools and no gateway."
    notes = (f"aileron: background work of claude {lasting}",)
    is_lasting = _BACKGROUND.intersection(settings.invocation.arguments)
    return Registration(server.environment, notes if is_lasting else (), ours)


def _configuration(server: McpServer) -> Mapping[str, object]:
    """Return the configuration of Aileron's server. C{alwaysLoad} shows its tools to the model without a search."""
    entry = {
        "type": "stdio",
        "command": server.command,
        "args": [],
        "env": {name: f"${{{name}}}" for name in server.environment},
        "alwaysLoad": True,
        "timeout": CALL_TIMEOUT_SECONDS * 1000,  # also replaces the limit of half an hour for a silent server
    }
    return {"mcpServers": {SERVER_NAME: entry}}


def _route(settings: AgentSettings, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes LLM traffic through the gateway with the user's own login.

    If the traffic cannot be routed, the registration has only a note that says why.
    """
    variables = evolve(settings, layers=tuple(map(_variables_of, settings.layers)))
    written = variables.about(Topic.SETTINGS, Topic.LOGINS).layers
    told = {name: value for layer in written for name, value in (layer.values or {}).items()}
    ours = _variables(settings.environment, told, gateway, has_login=_has_login(settings, variables))
    won = {name: value for name, value in ours.items() if name in told}
    reason = (
        routing.find_unreadable(variables)
        or _other_service(variables)
        or _other_address(variables, gateway)
        or _find_fixed(variables, won)
    )
    if reason is not None:
        return Registration(notes=(f"aileron: claude does not use the gateway: {reason}",))
    arguments = (f"{_OPTION}={json.dumps({'env': won})}",) if won else ()
    return Registration(variables=ours, arguments=arguments, notes=routing.note_routes("claude", ("anthropic",), {}))


def _variables_of(layer: SettingsLayer) -> SettingsLayer:
    """Return a layer with the variables that the settings in C{layer} set in Claude Code's environment."""
    if layer.topic is Topic.VARIABLES:
        return layer
    if layer.topic is Topic.LOGINS:  # an unreadable login counts as no login
        address = layer.part().get("base_url")
        return evolve(layer, values={_BASE_URL: to_text(address)} if address else {})
    variables = None if layer.values is None else layer.values.get("env", {})
    texts = {name: to_text(value) for name, value in variables.items()} if isinstance(variables, Mapping) else None
    return evolve(layer, values=texts)


def _has_login(settings: AgentSettings, variables: AgentSettings) -> bool:
    """Return whether Claude Code has a key, a key helper or a login to send."""
    named = any(value for name in _KEYS for _, value in variables.values(name))
    helped = any(value for name in _LOGINS for _, value in settings.about(Topic.SETTINGS).values(name))
    return named or helped or any(layer.values for layer in settings.about(Topic.LOGINS).layers)


def _other_service(variables: AgentSettings) -> str | None:
    for name in (*_OTHERS, _SOCKET):
        for place, value in variables.values(name):
            if value and (name == _SOCKET or value.lower() in _YES):
                return f"{name} ({place}) selects another service."
    return None


def _other_address(variables: AgentSettings, gateway: GatewayAccess) -> str | None:
    for name in _ADDRESSES:
        for place, value in variables.values(name):
            if value.strip("/") and not gateway.is_own("anthropic", value):
                return routing.explain_elsewhere(place, "anthropic")
    return None


def _variables(
    environment: Mapping[str, str], told: Mapping[str, str], gateway: GatewayAccess, *, has_login: bool
) -> Mapping[str, str]:
    """Return the variables that lead to the gateway.

    :param told: the variables that settings and logins set in Claude Code's environment.
    """
    stand_in = {_AUTH_TOKEN: routing.STAND_IN_KEY} if gateway.upstream("anthropic").injected and not has_login else {}
    past = routing.bypass_proxy({**environment, **told}, gateway.url)
    if _HEADERS in told:
        # These headers would override the launch's, and an argument that overrides them is readable by every user.
        return {_BASE_URL: gateway.url_with_key, **stand_in, **past}
    headers = _join_headers(environment.get(_HEADERS, ""), gateway.key)
    return {_BASE_URL: gateway.url, _HEADERS: headers, **stand_in, **past}


def _join_headers(theirs: str, key: str) -> str:
    """Return the user's header lines with the gateway key's added. The key of another launch is replaced."""
    header = routing.KEY_HEADER
    kept = [line for line in theirs.splitlines() if line.partition(":")[0].strip().lower() != header.lower()]
    return "\n".join((*kept, f"{header}: {key}"))


def _find_fixed(variables: AgentSettings, won: Mapping[str, str]) -> str | None:
    """Return why the launch cannot override these variables in the user's settings, or None if it can.

    :param won: the variables to override, with their new values.
    """
    for layer in variables.layers:
        if layer.final and (names := won.keys() & (layer.values or {}).keys()):
            return f"{layer.name} sets {', '.join(sorted(names))}."
    if won and any(layer.name == _OPTION for layer in variables.layers):
        return f"your settings set {', '.join(sorted(won))}, and {_OPTION} is where it cannot be overridden."
    if "/s/" in won.get(_BASE_URL, ""):
        return f"your settings set both {_BASE_URL} and {_HEADERS}: remove the first, the gateway uses it anyway."
    return None


def _hook(settings: AgentSettings, prompts: PromptAccess, made: Registration, _directory: str) -> Registration:
    """Return the registration with hooks that send permission prompts to the inbox, beside Claude Code's own dialog."""
    added = _add_hooks(settings, made, _list_hooks(prompts), "permission prompts are not listed in the inbox")
    past = routing.bypass_proxy({**settings.environment, **made.variables}, prompts.url)
    return evolve(added, variables={**made.variables, **past}) if added.arguments != made.arguments else added


def _wake(settings: AgentSettings, wake: WakeAccess, made: Registration, waits: bool) -> Registration:
    """Return the registration with a hook that runs at the end of each turn.

    If it waits for outcomes, it runs in the background and wakes Claude Code by exiting with 2.
    """
    hook: dict[str, object] = {"type": "command", "command": hook_command(sys.executable, waits=waits)}
    hook |= {"asyncRewake": True, "timeout": _WAKE_SECONDS} if waits else {"timeout": _BRIEF_SECONDS}
    return _add_hooks(settings, made, {"Stop": [{"hooks": [hook]}]}, "claude is not woken by late outcomes")


def _add_hooks(
    settings: AgentSettings, made: Registration, hooks: Mapping[str, object], otherwise: str
) -> Registration:
    """Return the registration with more hooks by event in the one C{--settings} argument.

    If the user gives this option, or turns hooks off, return the registration with a note instead.

    :param otherwise: the beginning of that note.
    """
    reason = _find_obstacle(settings)
    if reason is not None:
        return evolve(made, notes=(*made.notes, f"aileron: {otherwise}: {reason}"))
    begin = f"{_OPTION}="
    ours = [json.loads(each.removeprefix(begin)) for each in made.arguments if each.startswith(begin)]
    others = tuple(each for each in made.arguments if not each.startswith(begin))
    merged = {name: value for each in ours for name, value in each.items()}
    merged["hooks"] = {**merged.get("hooks", {}), **hooks}
    return evolve(made, arguments=(*others, f"{begin}{json.dumps(merged)}"))


def _find_obstacle(settings: AgentSettings) -> str | None:
    """Return why the launch can add no hooks, or None if it can."""
    if any(layer.name == _OPTION for layer in settings.layers):
        return f"your {_OPTION} is the only place for its hooks."
    off = next((place for place, value in settings.values("disableAllHooks") if value), None)
    return None if off is None else f"{off} turns hooks off."


def _list_hooks(prompts: PromptAccess) -> Mapping[str, object]:
    """Return Claude Code's hooks by event. None of them blocks a call if the daemon is gone, except for rules."""
    hook = {
        "type": "http",
        "url": f"{prompts.url}/v1/prompts/claude",
        "headers": {"Authorization": f"Bearer ${TOKEN}"},
        "allowedEnvVars": [TOKEN],
    }
    brief = [{"hooks": [{**hook, "timeout": _BRIEF_SECONDS}]}]
    asks = {
        "PermissionRequest": [{"hooks": [{**hook, "timeout": CALL_TIMEOUT_SECONDS}]}],
        **dict.fromkeys(_ENDS, brief),
    }
    checks = {"PreToolUse": [{"hooks": [{**hook, "timeout": _BRIEF_SECONDS, "onFailure": "block"}]}]}
    question = {"Elicitation": [{"matcher": SERVER_NAME, "hooks": [{**hook, "timeout": _BRIEF_SECONDS}]}]}
    return {**(asks if prompts.asks else {}), **(checks if prompts.checks else {}), **question}


_RESUMPTION = Resumption(
    flags=frozenset(("--verbose", "--strict-mcp-config", "--disable-slash-commands")),
    options=frozenset(("--model", "--permission-mode", "--output-format", "--effort", "--max-turns")),
    joined=frozenset(("--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--tools")),
    flags_replaced=frozenset(("-p", "--print", "-c", "--continue")),
    options_replaced=frozenset(("-r", "--resume", "--session-id")),
    arguments=lambda kept, conversation, message: (*kept, "-p", "--resume", conversation, message),
)

AGENT = Agent(
    name="claude",
    sources=(
        environment_variables,
        SettingsSource(files(Location("$CLAUDE_CONFIG_DIR", "~"), ".claude.json")),
        SettingsSource(files(_DIRECTORY, *_NAMES)),
        SettingsSource(project_files(*(f".claude/{name}" for name in _NAMES), root=".git")),
        SettingsSource(files(_DIRECTORY, "remote-settings.json"), final=True),
        SettingsSource(files(Location("/etc/claude-code"), *_MANAGED), final=True),
        SettingsSource(files(Location("/Library/Application Support/ClaudeCode"), *_MANAGED), final=True),
        SettingsSource(files(_DIRECTORY, ".credentials.json"), topic=Topic.LOGINS),
        SettingsSource(files(_SHARED, "configs/*.json"), topic=Topic.LOGINS),
        SettingsSource(_find_options, final=True),
    ),
    servers=(
        ServerSource(
            files(Location("$CLAUDE_CONFIG_DIR", "~"), ".claude.json"),
            (("mcpServers",), ("projects", HERE, "mcpServers")),
        ),
        ServerSource(project_files(".mcp.json", root=".git"), project=True),
    ),
    # Excluded: the other files there are settings, and programs that Claude Code starts.
    own=(
        *(_DIRECTORY / name for name in _OWN),
        Location("$XDG_CACHE_HOME/claude-cli-nodejs", "~/.cache/claude-cli-nodejs"),
    ),
    settings=(_DIRECTORY,),
    commands=_COMMANDS,
    alone="it gets no tools and no gateway.",
    draws=lambda arguments: not _HEADLESS.intersection(arguments),
    register=_register,
    route=_route,
    hook=_hook,
    asks_beside=True,
    wake=_wake,
    resumption=_RESUMPTION,
)
