"""What the user has told Codex, in all the places where it looks; nothing is written.

Seen in Codex 0.169: it merges C{/etc/codex/config.toml}, C{config.toml} of its home, the file of a profile that an
argument names, C{-c} arguments, and what an administrator manages.  A project's C{.codex/config.toml} counts where the
project is trusted, and may add tool servers, but never says where models are asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from attrs import field, frozen

from aileron.toml import read_toml

from .codex_arguments import headless, values
from .iagent import Invocation
from .reading import text_of

_SYSTEM = Path("/etc/codex")
BUILT_IN = "openai"


class Login(StrEnum):
    """With what Codex asks OpenAI's models.  C{HIDDEN}: it cannot be told."""

    NONE = "none"
    KEY = "key"
    CHATGPT = "chatgpt"
    HIDDEN = "hidden"


@frozen
class Place:
    """One file.

    :ivar name: to be shown.
    :ivar said: what stands in it; L{None}: it cannot be told.
    """

    name: str
    said: Mapping[str, Any] | None = field(repr=False)


@frozen
class Settings:
    """All of it.

    :ivar places: those that say where models are asked; what comes later counts.
    :ivar servers: the names of the user's tool servers, of projects too.
    """

    places: tuple[Place, ...]
    servers: frozenset[str]
    login: Login
    environment: Mapping[str, str] = field(repr=False)

    def text(self, name: str) -> tuple[str, str] | None:
        """A setting, and the place that says it."""
        for place in reversed(self.places):
            if value := (place.said or {}).get(name):
                return str(value), place.name
        return None

    @property
    def provider(self) -> str:
        """Which one it asks."""
        said = self.text("model_provider")
        return BUILT_IN if said is None else said[0]

    def entry(self, provider: str) -> Mapping[str, Any]:
        """What the user says of one of their own."""
        entries = (_part(_part(place.said or {}, "model_providers"), provider) for place in self.places)
        return {name: value for entry in entries for name, value in entry.items()}


def directory(environment: Mapping[str, str]) -> Path:
    """Codex's home."""
    return Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", "/")) / ".codex")


def read_settings(invocation: Invocation) -> Settings:
    """What there is for an agent that is started like that."""
    home = directory(invocation.environment)
    profiles = (home / f"{name}.config.toml" for name in values(invocation.arguments, "-p", "--profile"))
    managed = (where / "managed_config.toml" for where in (_SYSTEM, home))
    places = _there(_SYSTEM / "config.toml", home / "config.toml", *profiles, *managed)
    everywhere = (*places, *_there(*_projects(invocation)))
    servers = frozenset(name for place in everywhere for name in _part(place.said or {}, "mcp_servers"))
    stored = Settings(places, servers, Login.NONE, invocation.environment).text("cli_auth_credentials_store")
    login = _login(invocation, home, "file" if stored is None else stored[0])
    return Settings(places, servers, login, invocation.environment)


def _projects(invocation: Invocation) -> Iterator[Path]:
    """The files of projects, from where it works upwards."""
    for named in ("", *values(invocation.arguments, "-C", "--cd")):
        start = Path(invocation.directory) / named
        yield from (above / ".codex" / "config.toml" for above in (start, *start.parents))


def _there(*paths: Path) -> tuple[Place, ...]:
    return tuple(place for path in dict.fromkeys(paths) if (place := _read(path)) is not None)


def _read(path: Path) -> Place | None:
    try:
        text = text_of(path)
        return None if text is None else Place(str(path), read_toml(text).values)
    except ValueError:
        return Place(str(path), None)


def _login(invocation: Invocation, home: Path, store: str) -> Login:
    """The kind of its login, and nothing else that stands beside it."""
    environment = invocation.environment
    if environment.get("CODEX_ACCESS_TOKEN"):
        return Login.HIDDEN
    if headless(invocation.arguments) and environment.get("CODEX_API_KEY"):
        return Login.KEY
    if store != "file":
        return Login.HIDDEN
    try:
        text = text_of(home / "auth.json")
        stored = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return Login.HIDDEN
    if text is None:
        return Login.NONE
    return _kind(stored) if isinstance(stored, dict) else Login.HIDDEN


def _kind(stored: Mapping[str, Any]) -> Login:
    mode = stored.get("auth_mode") or ("apikey" if stored.get("OPENAI_API_KEY") else "chatgpt")
    return {"apikey": Login.KEY, "chatgpt": Login.CHATGPT}.get(mode, Login.HIDDEN)


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}
