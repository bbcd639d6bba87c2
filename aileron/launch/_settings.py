"""Reads what the user has set for an agent, layer by layer, wherever the agent looks; nothing is written.

An agent's module names its layers in a table of L{Source}s, the one that wins first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from ._formats import parse_jsonc, read_text
from .iagent import Invocation

Parse: TypeAlias = Callable[[str], Any]


class Topic(Enum):
    """What a layer is about, for agents that keep these apart."""

    SETTINGS = "settings"
    VARIABLES = "variables"
    SERVERS = "servers"
    LOGINS = "logins"
    OTHERS = "others"


@frozen
class SettingsLayer:
    """What one place says.

    :ivar name: the file, variable or option, to be shown.
    :ivar values: what stands there; L{None}: it cannot be told.
    :ivar final: whether nothing that a launch says can win over it.
    """

    name: str
    values: Mapping[str, Any] | None = field(repr=False)
    topic: Topic = Topic.SETTINGS
    final: bool = False

    def part(self, *path: str) -> Mapping[str, Any]:
        """The object below C{path}; empty where there is none."""
        return part_of(self.values or {}, *path)


@frozen
class LayeredSettings:
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
        """The name of the first layer of which it cannot be told what it says, below C{key} if there is one."""
        for layer in self.layers:
            if layer.values is None or (key and not isinstance(layer.values.get(key, {}), Mapping)):
                return layer.name
        return None

    def about(self, *topics: Topic) -> LayeredSettings:
        """The layers about some topics."""
        return evolve(self, layers=tuple(layer for layer in self.layers if layer.topic in topics))

    def values(self, *path: str) -> Iterator[tuple[str, Any]]:
        """Each value that stands below C{path}, behind the name of its layer, the one that wins first."""
        for layer in self.layers:
            around = layer.part(*path[:-1])
            if path[-1] in around:
                yield layer.name, around[path[-1]]

    def find(self, name: str) -> tuple[str, str] | None:
        """The value of a setting that counts, behind the name of its layer."""
        return next(((place, str(value)) for place, value in self.values(name)), None)


Source: TypeAlias = Callable[[Invocation], Iterable[SettingsLayer]]
"""Finds the layers of one kind of place."""


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
        """The path that counts; L{None}: none does."""
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


def read_settings(sources: Iterable[Source], invocation: Invocation) -> LayeredSettings:
    """Read all that there is for an agent that is started like that; what is found twice is there once."""
    layers: list[SettingsLayer] = []
    for source in sources:
        layers.extend(layer for layer in source(invocation) if layer not in layers)
    return LayeredSettings(invocation, tuple(layers))


def files(
    location: Location,
    *names: str,
    parse: Parse = parse_jsonc,
    topic: Topic = Topic.SETTINGS,
    final: bool = False,
) -> Source:
    """Files in a directory, or without names the one at the location itself.

    :param names: each may be a pattern.
    """

    def find(invocation: Invocation) -> Iterator[SettingsLayer]:
        found = location.find(invocation.environment)
        if found is not None:
            directory = Path(invocation.directory) / found
            for path in (path for name in names or ("",) for path in _matching(directory, name)):
                yield from read_layer(path, parse=parse, topic=topic, final=final)

    return find


def _matching(directory: Path, name: str) -> Iterable[Path]:
    return sorted(directory.glob(name)) if "*" in name else (directory / name,)


def _working_directory(invocation: Invocation) -> Iterable[Path]:
    return (Path(invocation.directory),)


def project_files(
    *names: str,
    parse: Parse = parse_jsonc,
    topic: Topic = Topic.SETTINGS,
    root: str = "",
    starts: Callable[[Invocation], Iterable[Path]] = _working_directory,
) -> Source:
    """Files in the directory where the agent works and in those above it.

    :param root: what lies in a project's topmost directory, where nothing lies above it that counts: without a project
        only the first directory does.  Empty: all directories do.
    :param starts: where the agent may work.
    """

    def find(invocation: Invocation) -> Iterator[SettingsLayer]:
        for start in starts(invocation):
            upwards = (start, *start.parents)
            ends = (number for number, path in enumerate(upwards) if (path / root).exists())
            for directory in upwards[: next(ends, 0) + 1] if root else upwards:
                for name in names:
                    yield from read_layer(directory / name, parse=parse, topic=topic)

    return find


def environment_variables(invocation: Invocation) -> Iterator[SettingsLayer]:
    """Each variable of the environment, as a layer that says its own name only."""
    for name, value in invocation.environment.items():
        yield SettingsLayer(name, {name: value}, Topic.VARIABLES)


def variable(name: str, *, parse: Parse = parse_jsonc, topic: Topic = Topic.SETTINGS) -> Source:
    """A variable that holds settings as a file would."""

    def find(invocation: Invocation) -> Iterator[SettingsLayer]:
        if text := invocation.environment.get(name, "").strip():
            yield parse_layer(name, text, parse=parse, topic=topic)

    return find


def read_layer(
    path: Path, *, parse: Parse = parse_jsonc, topic: Topic = Topic.SETTINGS, final: bool = False
) -> Iterator[SettingsLayer]:
    """Read one file: no layer where there is none, and one that says nothing where it cannot be read."""
    try:
        text = read_text(path)
    except ValueError:
        yield SettingsLayer(str(path), None, topic, final)
        return
    if text is not None:
        yield parse_layer(str(path), text, parse=parse, topic=topic, final=final)


def parse_layer(
    name: str, text: str, *, parse: Parse = parse_jsonc, topic: Topic = Topic.SETTINGS, final: bool = False
) -> SettingsLayer:
    """Parse the text of one place, which must be an object."""
    try:
        values = parse(text)
    except (ValueError, RecursionError):
        values = None
    known = {str(key): value for key, value in values.items()} if isinstance(values, Mapping) else None
    return SettingsLayer(name, known, topic, final)


def part_of(value: Any, *path: str) -> Mapping[str, Any]:
    """The object below C{path} in a value; empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
