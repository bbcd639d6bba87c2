"""What the user has told Claude Code of its environment and its login, in all the places where it looks.

Seen in Claude Code 2.1: the C{env} of its settings wins over the environment that it is started in.  It reads them in
C{.claude.json} and C{settings.json} of its own directory, in C{.claude} of the working directory and of the
repository's root, from C{--settings}, and from the administrator.  We look between those two as well: whoever finds
more leaves more alone.  Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from attrs import field, frozen

from aileron.values import JSON

from .iagent import Invocation
from .jsonc import loads_jsonc
from .reading import text_of

BASE_URL = "ANTHROPIC_BASE_URL"

_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_FEDERATION_RULE_ID",
)
_MANAGED = ("/etc/claude-code", "/Library/Application Support/ClaudeCode")


@frozen
class Place:
    """One piece of settings.

    :ivar name: the file or option, to be shown.
    :ivar variables: what it puts into Claude Code's environment; L{None}: it cannot be told.
    :ivar last: whether nothing that a launch says can win over it.
    :ivar login: whether it names a key, or where to get one.
    """

    name: str
    variables: Mapping[str, str] | None = field(repr=False)
    last: bool = False
    login: bool = False


@frozen
class Settings:
    """All of it."""

    places: tuple[Place, ...]
    environment: Mapping[str, str] = field(repr=False)

    def values(self, variable: str) -> Iterator[tuple[str, str]]:
        """What there is of one variable, with the place's name."""
        if variable in self.environment:
            yield variable, self.environment[variable]
        for place in self.places:
            if variable in (place.variables or {}):
                yield place.name, (place.variables or {})[variable]

    def has_login(self) -> bool:
        """Whether Claude Code has something to send as its key."""
        named = any(value for name in _KEYS for _, value in self.values(name))
        return named or any(place.login for place in self.places)


def read_settings(invocation: Invocation) -> Settings:
    """What there is for an agent that is started like that."""
    environment = invocation.environment
    places = [place for path, last in dict(_files(invocation)).items() if (place := _read(path, last)) is not None]
    places += [place for path in _logins(environment) if (place := _read_login(path)) is not None]
    places += _options(invocation)
    return Settings(tuple(places), environment)


def own_directory(environment: Mapping[str, str]) -> Path:
    """Where it keeps what is the user's."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or _home(environment) / ".claude")


def own_file(environment: Mapping[str, str]) -> Path:
    """The one file that lies outside of that."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or _home(environment)) / ".claude.json"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME", "/"))


def _files(invocation: Invocation) -> Iterator[tuple[Path, bool]]:
    environment = invocation.environment
    own = own_directory(environment)
    yield own_file(environment), False
    for directory in (own, *(above / ".claude" for above in _project(Path(invocation.directory)))):
        yield from ((directory / name, False) for name in ("settings.json", "settings.local.json"))
    yield own / "remote-settings.json", True
    for managed in map(Path, _MANAGED):
        yield managed / "managed-settings.json", True
        yield from ((path, True) for path in sorted((managed / "managed-settings.d").glob("*.json")))


def _project(start: Path) -> tuple[Path, ...]:
    """The directory, and those above it to the root of its repository, if it is in one."""
    way = (start, *start.parents)
    roots = (number for number, path in enumerate(way) if (path / ".git").exists())
    return way[: next(roots, 0) + 1]


def _read(path: Path, last: bool) -> Place | None:
    text = _text(path)
    return None if text is None else _place(str(path), text, last)


def _text(path: Path) -> str | None:
    """What lies there: nothing where it cannot be read, which is no JSON; L{None} where there is none."""
    try:
        return text_of(path)
    except ValueError:
        return ""


def _place(name: str, text: str, last: bool) -> Place:
    settings = _object(text)
    if settings is None:
        return Place(name, None, last)
    variables = settings.get("env", {})
    login = any(settings.get(key) for key in ("apiKeyHelper", "oauthAccount", "primaryApiKey"))
    return Place(name, _texts(variables) if isinstance(variables, Mapping) else None, last, login)


def _texts(variables: Mapping[str, JSON]) -> Mapping[str, str]:
    return {name: value if isinstance(value, str) else str(value) for name, value in variables.items()}


def _object(text: str) -> Mapping[str, JSON] | None:
    try:
        value = loads_jsonc(text)
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None


def _logins(environment: Mapping[str, str]) -> Iterator[Path]:
    """Its own, and those that Anthropic's programs share, of which one can name an address."""
    yield own_directory(environment) / ".credentials.json"
    above = environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config"
    directory = Path(environment.get("ANTHROPIC_CONFIG_DIR") or Path(above) / "anthropic")
    yield from sorted((directory / "configs").glob("*.json"))


def _read_login(path: Path) -> Place | None:
    login = _object(_text(path) or "")
    address = login and login.get("base_url")
    return Place(str(path), {BASE_URL: str(address)} if address else {}, login=True) if login else None


def _options(invocation: Invocation) -> Iterator[Place]:
    """What stands behind C{--settings}: a file, or JSON itself."""
    arguments = invocation.arguments
    named = [value for option, value in pairwise(arguments) if option == "--settings"]
    named += [argument.partition("=")[2] for argument in arguments if argument.startswith("--settings=")]
    for value in named:
        is_text = value.lstrip().startswith("{") or len(value) > 4096 or "\0" in value
        text = value if is_text else _text(Path(invocation.directory) / value)
        yield _place("--settings", text or "", last=True)
