"""OpenCode: one variable holds the launch's settings, which OpenCode merges over the user's configuration files.

Observed in OpenCode 1.18: it merges the files of its configuration directory, C{OPENCODE_CONFIG}, C{opencode.json[c]}
from the working directory up to the repository's root (without a repository, to the root of the file system), the
C{.opencode} directories on that path, in the home and in C{OPENCODE_CONFIG_DIR}, then C{OPENCODE_CONFIG_CONTENT}, then
the administrator's directory. A launch always reads all parent directories, to be cautious: a provider with other
settings is not routed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from aileron.base.json import JSON, plain
from aileron.client import TOKEN, URL
from aileron.features.launch import routing
from aileron.features.launch.agent import CALL_TIMEOUT_SECONDS, SERVER_NAME, Agent
from aileron.features.launch.layers import (
    AgentSettings,
    Location,
    SettingsSource,
    Text,
    Topic,
    content,
    files,
    part_of,
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
from aileron.features.launch.servers import ServerSource
from aileron.features.prompts.programs import OPENCODE_PLUGIN, WANTED
from aileron.features.wake.programs import MODE, OPENCODE_WAKE, name_mode
from aileron.model.errors import InvalidRequest

_CONTENT = "OPENCODE_CONFIG_CONTENT"
_NAMES = ("opencode.json", "opencode.jsonc")
_PROJECT_NAMES = (*_NAMES, *(f".opencode/{name}" for name in _NAMES))
_CONFIGURATION = Location("$XDG_CONFIG_HOME/opencode", "~/.config/opencode")
_DATA = Location("$XDG_DATA_HOME/opencode", "~/.local/share/opencode")
_STATE = Location("$XDG_STATE_HOME/opencode", "~/.local/state/opencode")
_CACHE = Location("$XDG_CACHE_HOME/opencode", "~/.cache/opencode")
_MANAGED = Location("$OPENCODE_TEST_MANAGED_CONFIG_DIR", "/etc/opencode")

_OWN, _DATABASE = ("log", "storage", "tool-output"), "opencode.db"

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
_ANTHROPIC = "https://api.anthropic.com"  # OpenCode adds /v1 to this address only
_HEADER = routing.KEY_HEADER.lower()
_SCREENLESS = frozenset(
    "acp agent auth completion debug export github import mcp models pr run serve session stats uninstall upgrade "
    "web --help -h --version -v".split()
)


def _starts(invocation: Invocation) -> Iterator[Path]:
    """Yield the directories in which OpenCode may work: the current one, and each argument that is a directory."""
    directory = Path(invocation.directory)
    for argument in chain(("",), invocation.arguments):
        start = directory / argument.removeprefix("--dir=")
        if len(argument) < 4096 and "\0" not in argument and start.is_dir():
            yield start.resolve()


def _find_logins(invocation: Invocation) -> Iterable[Path | Text]:
    """Return the place of the logins: the variable if it is set, or else the file."""
    return tuple(content("OPENCODE_AUTH_CONTENT")(invocation)) or files(_DATA, "auth.json")(invocation)


def _check(settings: AgentSettings) -> None:
    """Check that the user's own variable can be extended.

    :raises InvalidRequest: if the variable is not a JSON object, or its member C{mcp} is not an object.
    """
    for layer in settings.layers:
        # The message omits the text, which may contain the user's keys.
        if layer.name == _CONTENT and (layer.values is None or not isinstance(layer.values.get("mcp", {}), Mapping)):
            raise InvalidRequest(f"{_CONTENT} is set, but is not a JSON object. Correct or unset it.")


def _register(settings: AgentSettings, server: McpServer, providers: Providers, _directory: str) -> Registration:
    theirs = _own_content(settings)
    merged = {**theirs, "mcp": {**part_of(theirs, "mcp"), SERVER_NAME: _entry(server)}}
    if providers:
        merged["provider"] = {**part_of(theirs, "provider"), **providers}
    return Registration({_CONTENT: json.dumps(plain(merged))})


def _own_content(settings: AgentSettings) -> Mapping[str, Any]:
    """Return the user's own settings in the variable that the launch sets; empty if there are none."""
    return next((layer.part() for layer in settings.layers if layer.name == _CONTENT), {})


def _entry(server: McpServer) -> JSON:
    return {
        "type": "local",
        "command": [server.command],
        "enabled": True,
        "timeout": CALL_TIMEOUT_SECONDS * 1000,
        "environment": dict(server.environment),
    }


def _route(settings: AgentSettings, gateway: GatewayAccess) -> Registration:
    """Return the registration that routes the user's providers through the gateway, except those with another address.

    If the addresses cannot be determined, the registration has only a note that says why.
    """
    if (hidden := _find_hidden(settings)) is not None:
        return routing.leave_alone("OpenCode", hidden)
    used = [one for name in _KEYS if (one := _OpenCodeProvider(name, settings, gateway)).is_used()]
    kept = {one.name: reason for one in used if (reason := one.why_kept()) is not None}
    theirs = _own_content(settings)
    providers = {one.name: one.entry(part_of(theirs, "provider", one.name)) for one in used if one.name not in kept}
    past = routing.bypass_proxy(settings.environment, gateway.url) if providers else {}
    return Registration(past, providers=providers, notes=routing.note_routes("OpenCode", providers, kept))


def _find_hidden(settings: AgentSettings) -> str | None:
    """Return why the providers' addresses cannot be determined, or None if they can."""
    logins = (part_of(login) for layer in settings.about(Topic.LOGINS).layers for login in layer.part().values())
    if any(login.get("type") == "wellknown" for login in logins):
        return "organisation settings, which OpenCode downloads, may set base URLs."
    return routing.find_unreadable(settings.about(Topic.SETTINGS), "provider")


@frozen
class _OpenCodeProvider:
    """A provider in the user's configuration."""

    name: str
    settings: AgentSettings
    gateway: GatewayAccess

    @property
    def _entries(self) -> list[tuple[str, Mapping[str, Any]]]:
        entries = self.settings.about(Topic.SETTINGS).values("provider", self.name)
        return [(place, part_of(entry)) for place, entry in entries]

    @property
    def _login(self) -> str | None:
        logins = self.settings.about(Topic.LOGINS).values(self.name, "type")
        return next((str(kind) for _, kind in logins), None)

    def has_key(self) -> bool:
        """Return whether the user has a key or a login for this provider."""
        named = any("apiKey" in part_of(entry, "options") for _, entry in self._entries)
        return named or self._login is not None or bool(self.settings.environment.get(_KEYS[self.name]))

    def is_used(self) -> bool:
        """Return whether OpenCode offers this provider: there is a key, a login, an entry, or a key of the gateway's.

        Other providers must not be registered, as OpenCode would offer models for which the user has no key.
        """
        return self.has_key() or self.gateway.upstream(self.name).injected or bool(self._entries)

    def why_kept(self) -> str | None:
        """Return why the provider is not routed, or None if it can be routed."""
        if self.name == "openai" and self._login == "oauth":
            return "a ChatGPT login uses another address."
        name = _ADDRESSES[self.name]
        places = [] if self._is_own(self.settings.environment.get(name) or None) else [name]
        places += [place for place, entry in self._entries if self._leaves(entry)]
        return routing.explain_elsewhere(places[0], self.name) if places else None

    def _leaves(self, entry: Mapping[str, Any]) -> bool:
        models = [part_of(model, "provider") for model in part_of(entry, "models").values()]
        moved = any(key in part for part in (entry, *models) for key in ("api", "npm"))
        return moved or not self._is_own(part_of(entry, "options").get("baseURL"))

    def _is_own(self, address: Any) -> bool:
        if not isinstance(address, str):
            return address is None
        return self.gateway.is_own(self.name, f"{_ANTHROPIC}/v1" if address == _ANTHROPIC else address, "/v1")

    def entry(self, theirs: Mapping[str, Any]) -> Mapping[str, JSON]:
        """Return the user's entry for the provider, with the gateway's address and key added."""
        options = part_of(theirs, "options")
        headers = {name: text for name, text in part_of(options, "headers").items() if name.lower() != _HEADER}
        alone = self.gateway.upstream(self.name).injected and not self.has_key()
        stand_in = {"apiKey": routing.STAND_IN_KEY} if alone else {}
        ours = {"baseURL": f"{self.gateway.url}/v1", "headers": {**headers, routing.KEY_HEADER: self.gateway.key}}
        return {**theirs, "options": {**options, **stand_in, **ours}}


def _hook(_settings: AgentSettings, prompts: PromptAccess, made: Registration, _directory: str) -> Registration:
    """Return the registration with a plugin that lists permission prompts."""
    wanted = ",".join(name for name, is_on in (("asks", prompts.asks), ("checks", prompts.checks)) if is_on)
    added = _add_plugin(made, OPENCODE_PLUGIN, {WANTED: wanted})
    return added or _leave_out(made, "permission prompts are not listed in the inbox")


def _wake(_settings: AgentSettings, _wake: WakeAccess, made: Registration, waits: bool) -> Registration:
    """Return the registration with a plugin that starts a turn with an outcome."""
    added = _add_plugin(made, OPENCODE_WAKE, {MODE: name_mode(waits=waits)})
    return added or _leave_out(made, "opencode is not woken by late outcomes")


def _add_plugin(made: Registration, plugin: Path, variables: Mapping[str, str]) -> Registration | None:
    """Return the registration with a plugin, which the user's own plugins stay beside, or None if that is impossible.

    :param variables: the plugin's own variables.
    """
    merged = json.loads(made.variables[_CONTENT])
    theirs = merged.get("plugin", [])
    if not isinstance(theirs, list):
        return None
    merged["plugin"] = [*theirs, plugin.as_uri()]
    server = merged["mcp"][SERVER_NAME]["environment"]
    told = {name: server[name] for name in (URL, TOKEN)}
    return evolve(made, variables={**made.variables, **told, _CONTENT: json.dumps(merged), **variables})


def _leave_out(made: Registration, what: str) -> Registration:
    return evolve(made, notes=(*made.notes, f"aileron: {what}: plugin in {_CONTENT} is no list."))


_RESUMPTION = Resumption(
    options=frozenset(("-m", "--model", "--agent", "--variant", "--format", "--title", "--log-level")),
    flags_replaced=frozenset(("-c", "--continue")),
    options_replaced=frozenset(("-s", "--session", "--prompt")),
    arguments=lambda kept, conversation, message: ("run", *kept, "--session", conversation, message),
)

AGENT = Agent(
    name="opencode",
    sources=(
        SettingsSource(files(_CONFIGURATION, "config.json", *_NAMES)),
        SettingsSource(files(Location("$OPENCODE_CONFIG"))),
        SettingsSource(project_files(*_PROJECT_NAMES, starts=_starts)),
        SettingsSource(files(Location("~/.opencode"), *_NAMES)),
        SettingsSource(files(Location("$OPENCODE_CONFIG_DIR"), *_NAMES)),
        SettingsSource(files(_MANAGED, *_NAMES)),
        SettingsSource(content(_CONTENT)),
        SettingsSource(_find_logins, topic=Topic.LOGINS),
    ),
    servers=(
        ServerSource(files(_CONFIGURATION, "config.json", *_NAMES), (("mcp",),)),
        ServerSource(files(Location("~/.opencode"), *_NAMES), (("mcp",),)),
        ServerSource(project_files(*_PROJECT_NAMES, starts=_starts), (("mcp",),), project=True),
    ),
    # Excluded, as later sessions load or start them even outside a sandbox: downloaded packages and programs, logins,
    # and repositories of snapshots, in which git obeys settings.
    own=tuple(_DATA / name for name in _OWN),
    own_files=tuple(_DATA / f"{_DATABASE}{end}" for end in ("", "-wal", "-shm")),
    # OpenCode writes a .gitignore into the first at each start, and does not start if that fails.
    settings=(_CONFIGURATION, _DATA, _STATE, _CACHE),
    draws=lambda arguments: not _SCREENLESS.intersection(arguments[:1]),
    check=_check,
    register=_register,
    route=_route,
    hook=_hook,
    asks_beside=True,
    wake=_wake,
    resumption=_RESUMPTION,
)
