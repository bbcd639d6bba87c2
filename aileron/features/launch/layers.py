"""Reads the user's settings of an agent from all places where the agent looks for them. Nothing is written.

Each agent lists its layers in order of precedence.
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
    """The subject of a settings layer, for agents that store different subjects in different places.

    C{SERVERS}: only tool servers. C{VARIABLES}: environment variables.
    """

    SETTINGS = "settings"
    VARIABLES = "variables"
    SERVERS = "servers"
    LOGINS = "logins"
    OTHERS = "others"


@frozen
class SettingsLayer:
    """The settings found in one place.

    :ivar name: the file, variable or option, for messages.
    :ivar values: the settings, or None if they cannot be read.
    :ivar final: whether a launch cannot override the settings.
    """

    name: str
    values: Mapping[str, Any] | None = field(repr=False)
    topic: Topic = Topic.SETTINGS
    final: bool = False

    def part(self, *path: str) -> Mapping[str, Any]:
        """Return the object at C{path} in the layer's settings; empty if there is none."""
        return part_of(self.values or {}, *path)


@frozen
class AgentSettings:
    """All settings of the user that concern a launch.

    :ivar layers: the settings of all places, in order of precedence.
    """

    invocation: Invocation
    layers: tuple[SettingsLayer, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of the launch."""
        return self.invocation.environment

    def unreadable(self, key: str = "") -> str | None:
        """Return the name of the first layer that is unreadable or whose C{key} is not an object, or None."""
        for layer in self.layers:
            if layer.values is None or (key and not isinstance(layer.values.get(key, {}), Mapping)):
                return layer.name
        return None

    def about(self, *topics: Topic) -> AgentSettings:
        """Return these settings with only the layers of the given subjects."""
        return evolve(self, layers=tuple(layer for layer in self.layers if layer.topic in topics))

    def values(self, *path: str) -> Iterator[tuple[str, Any]]:
        """Yield each value at C{path} with the name of its layer before it, in order of precedence."""
        for layer in self.layers:
            around = layer.part(*path[:-1])
            if path[-1] in around:
                yield layer.name, around[path[-1]]

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the value of a setting that is in effect, as text, with the name of its layer before it.

        Return None if it is not set.
        """
        return next(((place, to_text(value)) for place, value in self.values(name)), None)


@frozen
class Text:
    """The text of settings that are not in a file, for example in a variable.

    :ivar name: the place, for messages.
    """

    name: str
    text: str = field(repr=False)


Finder: TypeAlias = Callable[[Invocation], Iterable[Path | Text]]
"""Finds the possible places of one kind of settings."""


@frozen
class SettingsSource:
    """One kind of place for an agent's settings, with its format.

    :ivar parse: parses the format; raises ValueError.
    :ivar topic: the topic of the layers.
    :ivar final: whether a launch cannot override the layers.
    """

    find: Finder
    parse: Callable[[str], Any] = parse_jsonc
    topic: Topic = Topic.SETTINGS
    final: bool = False

    def __call__(self, invocation: Invocation) -> Iterator[SettingsLayer]:
        """Yield a layer for each place that exists. If a place cannot be read or is no object, its values are None."""
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
"""Reads the layers of one kind of place: a L{SettingsSource} or a function."""


def read_settings(sources: Iterable[LayerReader], invocation: Invocation) -> AgentSettings:
    """Read all settings of an agent for an invocation. Equal layers are included once."""
    layers: list[SettingsLayer] = []
    for source in sources:
        layers.extend(layer for layer in source(invocation) if layer not in layers)
    return AgentSettings(invocation, tuple(layers))


def environment_variables(invocation: Invocation) -> Iterator[SettingsLayer]:
    """Yield a layer for each environment variable."""
    for name, value in invocation.environment.items():
        yield SettingsLayer(name, {name: value}, Topic.VARIABLES)


class Location:
    """A directory or file that environment variables may move: the first of some paths whose variable is set.

    :param alternatives: paths that begin with C{/}, with C{$NAME} for a variable, or with C{~} for the user's home.
        Other paths are relative to the agent's working directory.
    :param absolute: whether variables with a relative path are ignored.
    :param tilde: whether the agent expands C{~} in a variable's value.
    """

    def __init__(self, *alternatives: str, absolute: bool = False, tilde: bool = False) -> None:
        self._alternatives = alternatives
        self._absolute = absolute
        self._tilde = tilde

    def __truediv__(self, name: str) -> Location:
        below = (f"{each}/{name}" for each in self._alternatives)
        return Location(*below, absolute=self._absolute, tilde=self._tilde)

    def find(self, environment: Mapping[str, str]) -> Path | None:
        """Return the path in this environment, or None if no variable is set and no alternative is left."""
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
    """Return a finder of files in a directory, or of the location itself without names.

    :param names: the names of files; C{*} makes one a pattern.
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
    """Return a finder of files in the agent's working directory and its parents.

    :param root: the name of a file or directory, such as C{.git}, that marks the top directory of a project. Parents
        above it are not searched. Without a project, only the first directory is searched. Empty to search all parents.
    :param starts: returns the directories in which the agent may work.
    """

    def find(invocation: Invocation) -> Iterator[Path]:
        for start in starts(invocation):
            upwards = (start, *start.parents)
            ends = (number for number, path in enumerate(upwards) if (path / root).exists())
            for directory in upwards[: next(ends, 0) + 1] if root else upwards:
                yield from (directory / name for name in names)

    return find


def content(variable: str) -> Finder:
    """Return a finder of a variable whose value is the text of settings. An empty variable is ignored."""

    def find(invocation: Invocation) -> Iterator[Text]:
        if text := invocation.environment.get(variable, "").strip():
            yield Text(variable, text)

    return find


def part_of(value: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at C{path} inside a value; empty if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
