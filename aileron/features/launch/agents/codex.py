"""Codex: arguments override its settings and refer to variables, which hold the secrets.

Observed in Codex 0.169: it merges C{/etc/codex/config.toml}, C{config.toml} in its home, the file of a profile given as
an argument, C{-c} arguments, and the administrator's files. A project's C{.codex/config.toml} is used if the project is
trusted. It may add tool servers, but never changes the address of models.

Of Codex's built-in provider only the address can be changed, and a key must not be in an argument. So the launch adds
another provider with the built-in one's display name, which enables the same features, and with its key in a variable.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve

from aileron.features.launch import routing
from aileron.features.launch.agent import CALL_TIMEOUT_SECONDS, SERVER_NAME, Agent
from aileron.features.launch.editing import TOML
from aileron.features.launch.formats import parse_toml, to_text
from aileron.features.launch.layers import AgentSettings, Location, SettingsSource, Topic, files, part_of, project_files
from aileron.features.launch.registration import (
    GatewayAccess,
    Invocation,
    McpServer,
    PromptAccess,
    Providers,
    Registration,
)
from aileron.features.launch.servers import ServerSource
from aileron.features.prompts.programs import hash_codex_hook, relay_command

TomlValue: TypeAlias = str | bool | int | Sequence[str] | Mapping[str, "TomlValue"]

_HOME, _SYSTEM = Location("$CODEX_HOME", "~/.codex"), Location("/etc/codex")
_FILE, _MANAGED = "config.toml", "managed_config.toml"
_OWN = ("archived_sessions", "log", "sessions")
_OTHER_NAME = f"{SERVER_NAME}_session"
"""The name to use if the user has an entry named C{aileron}: Codex would merge both, and send the user's key to the
gateway."""

_START_TIMEOUT_SECONDS = 60
_BUILT_IN = "openai"
_NAME = "OpenAI"  # Codex enables features for this company's models by the provider's name
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AS_EVER = {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"}
_NO_CHATGPT = "a ChatGPT login uses another address."
_ELSEWHERE = (
    "it uses another address. To route it through the gateway, set that address, without /v1, in config.yaml as a "
    "provider's base_url"
)

_SCREENLESS = frozenset(
    "a app-server apply archive completion debug delete doctor e exec exec-server features help login logout mcp "
    "mcp-server migrate-nfs-db migrate-rollouts plugin queue remote-control review sandbox unarchive update".split()
)
_NO_PROGRAM = frozenset(("-h", "--help", "-V", "--version"))
_HEADLESS = frozenset(("e", "exec", "review"))
_WITH_VALUE = frozenset(
    "-C --cd -a --ask-for-approval --add-dir -c --config --disable --enable -i --image --local-provider -m --model "
    "-p --profile --remote --remote-auth-token-env -s --sandbox".split()
)
_STEERS = re.compile(
    r"(?:--config=|-c=?)?(?:model_providers?|openai_base_url|chatgpt_base_url|cli_auth_credentials_store)\s*[.=].*"
    r"|--oss|--local-provider(?:=.*)?",
    re.DOTALL,
)


_HOOKS = re.compile(r"(?:--config=|-c=?)?hooks\s*[.=].*", re.DOTALL)
_FLAGS = "/<session-flags>/config.toml"
"""Codex's name for its arguments, as the place of a hook."""


class _CodexLogin(StrEnum):
    """The login that Codex uses for OpenAI's models. C{HIDDEN}: it cannot be determined."""

    NONE = "there is no login yet. Launch it again after you log in."
    KEY = "key"
    CHATGPT = "chatgpt"
    HIDDEN = "its login cannot be determined."


def _draws(arguments: tuple[str, ...]) -> bool:
    return not _NO_PROGRAM.intersection(arguments) and _command(arguments) not in _SCREENLESS


def _command(arguments: tuple[str, ...]) -> str | None:
    """Return the command or prompt in the arguments, or None: the first that is no option and no option's value."""
    rest = iter(arguments)
    for argument in rest:
        if argument in _WITH_VALUE:
            next(rest, None)
        elif not argument.startswith("-"):
            return argument
    return None


def _find_profiles(invocation: Invocation) -> Iterator[Path]:
    """Yield the files of profiles, in order of precedence: the last one given first."""
    home = Path(invocation.directory) / (_HOME.find(invocation.environment) or "")
    for name in reversed(list(invocation.option("-p", "--profile"))):
        yield home / f"{name}.{_FILE}"


def _starts(invocation: Invocation) -> Iterator[Path]:
    for named in ("", *invocation.option("-C", "--cd")):
        yield Path(invocation.directory) / named


def _register(settings: AgentSettings, server: McpServer, _providers: Providers, _directory: str) -> Registration:
    name, notes = SERVER_NAME, tuple[str, ...]()
    if any(settings.values("mcp_servers", SERVER_NAME)):
        name = _OTHER_NAME
        notes = (f"aileron: you already have a tool server {SERVER_NAME}, so this session's is named {name}",)
    overrides = {
        f"mcp_servers.{name}": _entry(server),
        # Needed to notice added actions. Codex calls this feature unstable and would warn at each start.
        "features.mcp_tool_list_changed": True,
        "suppress_unstable_features_warning": True,
    }
    return Registration(server.environment, notes, tuple(_override(overrides)))


def _entry(server: McpServer) -> TomlValue:
    return {
        "command": server.command,
        "args": (),
        "env_vars": sorted(server.environment),
        "enabled": True,
        "required": True,  # otherwise Codex continues without the server after a second
        "default_tools_approval_mode": "approve",  # otherwise Codex refuses the tools, or asks before Aileron does
        "tool_timeout_sec": CALL_TIMEOUT_SECONDS,
        "startup_timeout_sec": _START_TIMEOUT_SECONDS,
    }


def _override(settings: Mapping[str, TomlValue]) -> Iterator[str]:
    """Yield the arguments by which Codex sets values at dotted paths of its settings."""
    for path, value in settings.items():
        yield from ("-c", f"{path}={_to_toml(value)}")


def _to_toml(value: TomlValue) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_to_toml(name)}={_to_toml(part)}" for name, part in value.items()) + "}"
    if isinstance(value, str):
        # A basic string of TOML: a JSON string, except for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ",".join(map(_to_toml, value)) + "]"
    return json.dumps(value)


def _route(settings: AgentSettings, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes LLM traffic through the gateway, or one that only notes why it cannot."""
    models = settings.about(Topic.SETTINGS)
    provider = (_find(models, "model_provider") or ("", _BUILT_IN))[1]
    steered = any(_STEERS.fullmatch(argument) for argument in settings.invocation.arguments)
    if reason := "your arguments set its address." if steered else routing.find_unreadable(models):
        return _leave_alone(provider, reason)
    if provider == _BUILT_IN:
        return _route_built_in(models, _login(settings), gateway)
    return _route_own(models, provider, gateway)


def _leave_alone(provider: str, reason: str) -> Registration:
    return Registration(notes=routing.note_routes("Codex", (), {provider: reason}))


def _find(models: AgentSettings, name: str) -> tuple[str, str] | None:
    """Return the place and the value of the first non-empty setting of this name, or None if there is none."""
    return next(((place, to_text(value)) for place, value in models.values(name) if value), None)


def _own_entry(models: AgentSettings, provider: str) -> Mapping[str, Any]:
    """Return the user's entry for a provider, merged from all layers in order of precedence."""
    entries = [part_of(entry) for _, entry in models.values("model_providers", provider)]
    return {name: value for entry in reversed(entries) for name, value in entry.items()}


def _login(settings: AgentSettings) -> _CodexLogin:
    """Return the kind of login that Codex uses, judged by its settings, variables and login file."""
    store = _find(settings.about(Topic.SETTINGS), "cli_auth_credentials_store")
    if settings.environment.get("CODEX_ACCESS_TOKEN"):
        return _CodexLogin.HIDDEN
    # Codex reads a key from the environment only in commands without a user interface.
    if _command(settings.invocation.arguments) in _HEADLESS and settings.environment.get("CODEX_API_KEY"):
        return _CodexLogin.KEY
    if store is not None and store[1] != "file":
        return _CodexLogin.HIDDEN
    for layer in settings.about(Topic.LOGINS).layers:
        usual = "apikey" if layer.part().get("OPENAI_API_KEY") else "chatgpt"
        mode = None if layer.values is None else layer.values.get("auth_mode") or usual
        return {"apikey": _CodexLogin.KEY, "chatgpt": _CodexLogin.CHATGPT}.get(str(mode), _CodexLogin.HIDDEN)
    return _CodexLogin.NONE


def _route_built_in(models: AgentSettings, login: _CodexLogin, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes Codex's built-in provider for OpenAI's models, with the user's login.

    If the provider cannot be routed, the registration has only a note that says why.
    """
    address = _find(models, "openai_base_url")
    provider, url = _find_usual(login, gateway) if address is None else _find_url(gateway, address[1])
    if not provider:
        return _leave_alone(_BUILT_IN, _NO_CHATGPT if address is None else f"by {address[0]} {_ELSEWHERE}")
    if login in (_CodexLogin.NONE, _CodexLogin.HIDDEN) and not gateway.upstream(provider).injected:
        return _leave_alone(_BUILT_IN, login.value)
    entry: TomlValue = {
        "name": _NAME,
        "base_url": url,
        "wire_api": "responses",
        "requires_openai_auth": login is not _CodexLogin.NONE,
        "env_http_headers": {routing.KEY_HEADER: routing.KEY_VARIABLE, **_AS_EVER},
    }
    name = _OTHER_NAME if _own_entry(models, SERVER_NAME) else SERVER_NAME
    routes = _route_through(provider, models, gateway, {"model_provider": name, f"model_providers.{name}": entry})
    if "resume" not in models.invocation.arguments:
        return routes
    note = "aileron: Codex resumes only sessions that began with the gateway. For others use fork, or --no-gateway"
    return evolve(routes, notes=(*routes.notes, note))


def _route_own(models: AgentSettings, name: str, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes a provider that the user defined, changing as little of it as possible.

    If the provider cannot be routed, the registration has only a note that says why.
    """
    entry = _own_entry(models, name)
    address, variable = entry.get("base_url"), str(entry.get("env_key", ""))
    provider, url = _find_url(gateway, address) if isinstance(address, str) and _BARE.fullmatch(name) else ("", "")
    if not provider:
        return _leave_alone(name, _ELSEWHERE)
    path = f"model_providers.{name}"
    overrides: dict[str, TomlValue] = {
        f"{path}.base_url": url,
        f"{path}.env_http_headers.{routing.KEY_HEADER}": routing.KEY_VARIABLE,
        f"{path}.supports_websockets": False,
    }
    routes = _route_through(provider, models, gateway, overrides)
    if gateway.upstream(provider).injected and variable and not models.environment.get(variable):
        return evolve(routes, variables={**routes.variables, variable: routing.STAND_IN_KEY})
    return routes


def _route_through(
    provider: str, models: AgentSettings, gateway: GatewayAccess, overrides: Mapping[str, TomlValue]
) -> Registration:
    past = routing.bypass_proxy(models.environment, gateway.url, ports=False)
    return Registration(
        variables={routing.KEY_VARIABLE: gateway.key, **past},
        arguments=tuple(_override(overrides)),
        notes=routing.note_routes("Codex", (provider,), {}),
    )


def _find_usual(login: _CodexLogin, gateway: GatewayAccess) -> tuple[str, str]:
    """Return the gateway's provider and URL for the built-in provider; empty texts if the gateway has none."""
    name, rest = ("chatgpt", "") if login is _CodexLogin.CHATGPT else (_BUILT_IN, "/v1")
    return (name, f"{gateway.url}{gateway.upstreams[name].prefix}{rest}") if name in gateway.upstreams else ("", "")


def _find_url(gateway: GatewayAccess, address: str) -> tuple[str, str]:
    """Return the gateway's provider and URL for an address; empty texts if no provider of the gateway has the address.

    :param address: the URL of an upstream, or the gateway's own URL for it, with any path below.
    """
    address = address.rstrip("/")
    for name, upstream in gateway.upstreams.items():
        here = f"{gateway.url}{upstream.prefix}"
        for base in (upstream.base_url, here):
            if f"{address}/".startswith(f"{base}/"):
                return name, f"{here}{address.removeprefix(base)}"
    return "", ""


def _hook(settings: AgentSettings, prompts: PromptAccess, made: Registration, _directory: str) -> Registration:
    """Return the registration with hooks by arguments, each with the hash by which Codex trusts the hook.

    If the user's arguments set hooks, return the registration with a note instead.
    """
    if any(_HOOKS.fullmatch(argument) for argument in settings.invocation.arguments):
        note = "aileron: permission prompts are not listed in the inbox: your arguments set hooks."
        return evolve(made, notes=(*made.notes, note))
    hooks = [("PermissionRequest", "permission_request", False)] if prompts.asks else []
    hooks += [("PreToolUse", "pre_tool_use", True)] if prompts.checks else []
    arguments, trusted = list[str](), dict[str, TomlValue]()
    for name, event, block in hooks:
        command = relay_command(sys.executable, "codex", block=block)
        handler: TomlValue = {"type": "command", "command": command, "timeout": CALL_TIMEOUT_SECONDS}
        # TomlValue has no lists of tables.
        arguments += ("-c", f"hooks.{name}=[{{hooks=[{_to_toml(handler)}]}}]")
        trusted[f"{_FLAGS}:{event}:0:0"] = {"trusted_hash": hash_codex_hook(event, command, CALL_TIMEOUT_SECONDS)}
    arguments += ("-c", f"hooks.state={_to_toml(trusted)}")
    return evolve(made, arguments=(*made.arguments, *arguments))


AGENT = Agent(
    name="codex",
    sources=(
        SettingsSource(files(_HOME, _MANAGED), parse_toml),
        SettingsSource(files(_SYSTEM, _MANAGED), parse_toml),
        SettingsSource(_find_profiles, parse_toml),
        SettingsSource(files(_HOME, _FILE), parse_toml),
        SettingsSource(files(_SYSTEM, _FILE), parse_toml),
        SettingsSource(project_files(f".codex/{_FILE}", starts=_starts), parse_toml, Topic.SERVERS),
        SettingsSource(files(_HOME, "auth.json"), topic=Topic.LOGINS),
    ),
    servers=(
        ServerSource(files(_HOME, _FILE), (("mcp_servers",),), TOML),
        ServerSource(project_files(f".codex/{_FILE}", starts=_starts), (("mcp_servers",),), TOML, project=True),
    ),
    # Excluded: the other files there are settings, and programs that a later session would start.
    own=tuple(_HOME / name for name in _OWN),
    settings=(_HOME,),
    draws=_draws,
    register=_register,
    route=_route,
    hook=_hook,
)
