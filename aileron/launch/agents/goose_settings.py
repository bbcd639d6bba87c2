"""What the user has told goose, in all the places where goose looks; nothing is written.

Seen in goose 1.52: a variable wins over the user's C{config.yaml}, this over the files that
C{GOOSE_ADDITIONAL_CONFIG_FILES} names, the last of them first, and these over the administrator's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from .iagent import Invocation
from .reading import text_of

ADDITIONAL = "GOOSE_ADDITIONAL_CONFIG_FILES"
_SYSTEM = "/etc/goose/config.yaml"


@frozen
class Layer:
    """One place.

    :ivar name: to be shown.
    :ivar values: what it says; L{None}: it cannot be told.
    """

    name: str
    values: Mapping[str, Any] | None = field(repr=False)

    def part(self, key: str) -> Mapping[str, Any]:
        """What it says of one thing that has parts."""
        found = (self.values or {}).get(key)
        return found if isinstance(found, Mapping) else {}


@frozen
class Settings:
    """All of it.

    :ivar layers: every configuration that there is, the one that wins first.
    """

    layers: tuple[Layer, ...]

    def said(self, name: str) -> tuple[str, str] | None:
        """The value that counts, behind the name of the place that says it."""
        for layer in self.layers:
            if name in (layer.values or {}):
                return layer.name, str((layer.values or {})[name])
        return None


def read_settings(invocation: Invocation) -> Settings:
    """What there is for an agent that is started like that."""
    files = (layer for path in _files(invocation) if (layer := _read(path)) is not None)
    variables = (Layer(name, {name: value}) for name, value in invocation.environment.items())
    return Settings((*variables, *files))


def configuration_directory(environment: Mapping[str, str]) -> Path:
    """Where the user's own settings lie."""
    return _place(environment, "XDG_CONFIG_HOME", ".config", "config")


def directories(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Where it keeps sessions and logs."""
    data = _place(environment, "XDG_DATA_HOME", ".local/share", "data")
    return data, _place(environment, "XDG_STATE_HOME", ".local/state", "state")


def _place(environment: Mapping[str, str], name: str, usual: str, below: str) -> Path:
    root = environment.get("GOOSE_PATH_ROOT", "")
    if os.path.isabs(root):
        return Path(root) / below
    base = environment.get(name, "")
    return (Path(base) if os.path.isabs(base) else Path(environment.get("HOME", "/")) / usual) / "goose"


def _files(invocation: Invocation) -> Iterator[Path]:
    """The files, the one that wins first."""
    yield configuration_directory(invocation.environment) / "config.yaml"
    named = invocation.environment.get(ADDITIONAL, "").split(os.pathsep)
    yield from (Path(invocation.directory) / name for name in reversed(named) if name)
    yield Path(_SYSTEM)


def _read(path: Path) -> Layer | None:
    try:
        text = text_of(path)
    except ValueError:
        return Layer(str(path), None)
    return None if text is None else Layer(str(path), _loaded(text))


def _loaded(text: str) -> Mapping[str, Any] | None:
    # Imported here: only those who launch this agent need it.
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if value is None:
        return {}
    return {str(name): part for name, part in value.items()} if isinstance(value, Mapping) else None
