"""What the user has told pi of servers, providers and proxies; nothing is written.

Seen in pi 0.99: C{models.json}, C{auth.json}, C{mcp.json} and C{settings.json} in its own directory, and a project's
C{.pi/mcp.json}.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from aileron.values import JSON

from .iagent import Invocation
from .jsonc import loads_jsonc
from .reading import text_of


@frozen
class Place:
    """One file.

    :ivar name: to be shown.
    :ivar values: what it says, nothing if there is none; L{None}: it cannot be told.
    """

    name: str
    values: Mapping[str, JSON] | None = field(repr=False)

    def part(self, key: str) -> Mapping[str, JSON]:
        """What it says of one thing that has parts."""
        return part(self.values or {}, key)


@frozen
class Settings:
    """All of it.

    :ivar models: the user's own providers, and where they are.
    :ivar logins: by provider.
    :ivar servers: each file that may name MCP servers.
    """

    environment: Mapping[str, str] = field(repr=False)
    models: Place
    logins: Place
    servers: tuple[Place, ...]
    others: Place


def part(value: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    """The object under a name; empty where there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def read_settings(invocation: Invocation) -> Settings:
    """What there is for an agent that is started like that."""
    own, project = home_of(invocation.environment), Path(invocation.directory) / ".pi"
    return Settings(
        environment=invocation.environment,
        models=_read(own / "models.json"),
        logins=_read(own / "auth.json"),
        servers=(_read(own / "mcp.json"), _read(project / "mcp.json")),
        others=_read(own / "settings.json"),
    )


def home_of(environment: Mapping[str, str]) -> Path:
    """Its own directory, of which pi has only one."""
    home = environment.get("HOME", "/")
    named = environment.get("PI_CODING_AGENT_DIR", "")
    if named == "~" or named.startswith("~/"):
        return Path(home + named[1:])
    return Path(named or Path(home) / ".pi" / "agent")


def _read(path: Path) -> Place:
    try:
        text = text_of(path, "utf-8-sig")
        value = {} if text is None else loads_jsonc(text)
    except ValueError:
        value = None
    return Place(str(path), value if isinstance(value, Mapping) else None)
