"""Reads what the user has set for an agent, layer by layer, wherever the agent looks; nothing is written.

An agent names its layers in a table, the one that wins first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from .formats import parse_jsonc, read_text, to_text
from .registration import Invocation


class Topic(Enum):
    """The subject of a settings layer, for agents that keep subjects apart.

    C{SERVERS} say something of tool servers only, C{VARIABLES} are the environment's.
    """

    SETTINGS = "settings"
    VARIABLES = "variables"
    SERVERS = "servers"
    LOGINS = "logins"
    OTHERS = "others"


@frozen
class SettingsLayer:
    """The settings found in one place.

    :ivar name: the file, variable or option, to be shown.
    :ivar values: what stands there; L{None}: it cannot be told.
    :ivar final: whether nothing that a launch says can win over it.
    """

    name: str
    values: Mapping[str, Any] | None = field(repr=False)
    topic: Topic = Topic.SETTINGS
    final: bool = False

    def part(self, *path: str) -> Mapping[str, Any]:
        """Return the object below C{path}; empty where there is none."""
        return part_of(self.values or {}, *path)


@frozen
class AgentSettings:
    """Everything that the user has set, as far as it concerns a launch.

    :ivar layers: every place that says something, the one that wins first.
    """

    invocation: Invocation
    layers: tuple[SettingsLayer, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the launch."""
        return self.invocation.environment

    def unreadable(self, key: str = "") -> str | None:
        """Return the name of the first layer of which it cannot be told what it says, below C{key} if there is one."""
        for layer in self.layers:
            if layer.values is None or (key and not isinstance(layer.values.get(key, {}), Mapping)):
                return layer.name
        return None

    def about(self, *topics: Topic) -> AgentSettings:
        """Return the layers about some topics."""
        return evolve(self, layers=tuple(layer for layer in self.layers if layer.topic in topics))

    def values(self, *path: str) -> Iterator[tuple[str, Any]]:
        """Yield each value that stands below C{path}, behind the name of its layer, the one that wins first."""
        for layer in self.layers:
            around = layer.part(*path[:-1])
            if path[-1] in around:
                yield layer.name, around[path[-1]]

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the value of a setting that counts, behind the name of its layer."""
        return next(((place, to_text(value)) for place, value in self.values(name)), None)


@frozen
class Text:
    """Settings that do not lie in a file of their own name.

    :ivar name: what holds them, to be shown.
    """

    name: str
    text: str = field(repr=False)


Finder: TypeAlias = Callable[[Invocation], Iterable[Path | Text]]
"""Finds where settings of one kind may lie."""


@frozen
class SettingsSource:
    """One kind of place where an agent looks for settings, and how to read it.

    :ivar parse: of a format; raises ValueError.
    :ivar topic: as of L{SettingsLayer}, like C{final}.
    """

    find: Finder
    parse: Callable[[str], Any] = parse_jsonc
    topic: Topic = Topic.SETTINGS
    final: bool = False

    def __call__(self, invocation: Invocation) -> Iterator[SettingsLayer]:
        """Read what there is; a layer that cannot be read, or is no object, is there and says nothing."""
        for place in self.find(invocation):
            name = place.name if isinstance(place, Text) else str(place)
            try:
                text = place.text if isinstance(place, Text) else read_text(place)
                values = None if text is None else self.parse(text)
            except (ValueError, RecursionError):
                text, values = "", None
            if text is not None:
                known = {str(key): value for key, value in values.items()} if isinstance(values, Mapping) else None
                yield SettingsLayer(name, known, self.topic, self.final)


LayerReader: TypeAlias = Callable[[Invocation], Iterable[SettingsLayer]]
"""Reads the layers of one kind of place: a L{SettingsSource}, or a function."""


def read_settings(sources: Iterable[LayerReader], invocation: Invocation) -> AgentSettings:
    """Read all that there is for an agent that is started like that; what is found twice is there once."""
    layers: list[SettingsLayer] = []
    for source in sources:
        layers.extend(layer for layer in source(invocation) if layer not in layers)
    return AgentSettings(invocation, tuple(layers))


def environment_variables(invocation: Invocation) -> Iterator[SettingsLayer]:
    """Yield each variable of the environment, as a layer that says its own name only."""
    for name, value in invocation.environment.items():
        yield SettingsLayer(name, {name: value}, Topic.VARIABLES)


class Location:
    """A directory or file that variables may move: the first of some paths whose variable is set.

    :param alternatives: each begins with C{/}, with C{$NAME}, with C{~} for the user's home, or where the agent works.
    :param absolute: whether only variables with an absolute path count.
    :param tilde: whether the agent takes C{~} in a variable for the home, too.
    """

    def __init__(self, *alternatives: str, absolute: bool = False, tilde: bool = False) -> None:
        self._alternatives = alternatives
        self._absolute = absolute
        self._tilde = tilde

    def __truediv__(self, name: str) -> Location:
        below = (f"{each}/{name}" for each in self._alternatives)
        return Location(*below, absolute=self._absolute, tilde=self._tilde)

    def find(self, environment: Mapping[str, str]) -> Path | None:
        """Return the path that counts; L{None}: none does."""
        return next((path for each in self._alternatives if (path := self._path(each, environment))), None)

    def _path(self, alternative: str, environment: Mapping[str, str]) -> Path | None:
        begin, _, rest = alternative.partition("/")
        if not begin.startswith("$"):
            return _expand(alternative, environment)
        value = environment.get(begin[1:], "")
        if not value or (self._absolute and not os.path.isabs(value)):
            return None
        return (_expand(value, environment) if self._tilde else Path(value)) / rest


def _expand(path: str, environment: Mapping[str, str]) -> Path:
    begin, _, rest = path.partition("/")
    return Path(environment.get("HOME", "/")) / rest if begin == "~" else Path(path)


def files(location: Location, *names: str) -> Finder:
    """Files in a directory, or without names the one at the location itself.

    :param names: each may be a pattern.
    """

    def find(invocation: Invocation) -> Iterator[Path]:
        found = location.find(invocation.environment)
        if found is not None:
            directory = Path(invocation.directory) / found
            for name in names or ("",):
                yield from sorted(directory.glob(name)) if "*" in name else (directory / name,)

    return find


def project_files(
    *names: str,
    root: str = "",
    starts: Callable[[Invocation], Iterable[Path]] = lambda invocation: (Path(invocation.directory),),
) -> Finder:
    """Files in the directory where the agent works and in those above it.

    :param root: what lies in a project's topmost directory, where nothing lies above it that counts: without a project
        only the first directory does.  Empty: all directories do.
    :param starts: where the agent may work.
    """

    def find(invocation: Invocation) -> Iterator[Path]:
        for start in starts(invocation):
            upwards = (start, *start.parents)
            ends = (number for number, path in enumerate(upwards) if (path / root).exists())
            for directory in upwards[: next(ends, 0) + 1] if root else upwards:
                yield from (directory / name for name in names)

    return find


def content(variable: str) -> Finder:
    """Find a variable that holds settings as a file would."""

    def find(invocation: Invocation) -> Iterator[Text]:
        if text := invocation.environment.get(variable, "").strip():
            yield Text(variable, text)

    return find


def part_of(value: Any, *path: str) -> Mapping[str, Any]:
    """Return the object below C{path} in a value; empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
