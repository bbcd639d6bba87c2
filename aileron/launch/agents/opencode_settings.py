"""What the user has told OpenCode of its providers, in all the places where OpenCode looks; nothing is written.

Seen in OpenCode 1.18: it merges the files of its configuration directory, C{OPENCODE_CONFIG}, C{opencode.json[c]} from
the working directory up to the repository's root (without a repository, to the root of the file system), the
C{.opencode} directories on the same way, the home's and C{OPENCODE_CONFIG_DIR}, then C{OPENCODE_CONFIG_CONTENT}, then
the administrator's directory.  We look all the way up in any case: whoever finds more leaves more alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from attrs import field, frozen

from aileron.values import JSON

from .iagent import Invocation
from .jsonc import loads_jsonc
from .reading import text_of

CONFIGURATION = "OPENCODE_CONFIG_CONTENT"
_NAMES = ("opencode.json", "opencode.jsonc")


@frozen
class Place:
    """One configuration.

    :ivar name: the file or variable, to be shown.
    :ivar providers: what it says under C{provider}; L{None}: it cannot be told.
    """

    name: str
    providers: Mapping[str, JSON] | None = field(repr=False)


@frozen
class Settings:
    """All of it.

    :ivar places: every configuration that there is.
    :ivar logins: the kind of login (C{api oauth wellknown}) by provider, or by address where it is C{wellknown}.
    """

    places: tuple[Place, ...]
    logins: Mapping[str, str]
    environment: Mapping[str, str] = field(repr=False)


def read_settings(invocation: Invocation) -> Settings:
    """What there is for an agent that is started like that."""
    environment = invocation.environment
    files = dict.fromkeys(_files(invocation))
    places = [place for path in files if (place := _read(path)) is not None]
    if content := environment.get(CONFIGURATION, "").strip():
        places.append(Place(CONFIGURATION, _providers(content)))
    return Settings(tuple(places), _logins(environment), environment)


def _files(invocation: Invocation) -> Iterator[Path]:
    environment = invocation.environment
    home, directory = Path(environment.get("HOME", "/")), Path(invocation.directory)
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    yield from (own / name for name in ("config.json", *_NAMES))
    if named := environment.get("OPENCODE_CONFIG"):
        yield directory / named
    upwards = (above for start in _starts(invocation) for above in (start, *start.parents))
    for above in upwards:
        yield from (above / name for name in _NAMES)
        yield from (above / ".opencode" / name for name in _NAMES)
    managed = environment.get("OPENCODE_TEST_MANAGED_CONFIG_DIR") or "/etc/opencode"
    for other in (home / ".opencode", environment.get("OPENCODE_CONFIG_DIR"), managed):
        yield from (directory / other / name for name in _NAMES if other)


def _starts(invocation: Invocation) -> Iterator[Path]:
    """Where it may work: here, or in whatever directory one of its arguments names."""
    directory = Path(invocation.directory)
    for argument in chain(("",), invocation.arguments):
        start = directory / argument.removeprefix("--dir=")
        if len(argument) < 4096 and "\0" not in argument and start.is_dir():
            yield start.resolve()


def _read(path: Path) -> Place | None:
    try:
        text = text_of(path)
    except ValueError:
        text = ""
    return None if text is None else Place(str(path), _providers(text))


def _providers(text: str) -> Mapping[str, JSON] | None:
    try:
        value = loads_jsonc(text)
    except ValueError:
        return None
    providers = value.get("provider", {}) if isinstance(value, Mapping) else None
    return providers if isinstance(providers, Mapping) else None


def _logins(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The kinds of its logins, and nothing else that stands beside them; none where OpenCode would find none."""
    data = environment.get("XDG_DATA_HOME") or Path(environment.get("HOME", "/")) / ".local" / "share"
    try:
        text = environment.get("OPENCODE_AUTH_CONTENT") or text_of(Path(data) / "opencode" / "auth.json")
        value = loads_jsonc(text or "{}")
    except ValueError:
        return {}
    logins = value.items() if isinstance(value, Mapping) else ()
    return {name: str(login.get("type")) for name, login in logins if isinstance(login, Mapping)}
