"""The keys of a configuration: what reads each, and what the reference of the configuration says about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import field, frozen

from ._nodes import NotConfig, WholeNumber, entries

if TYPE_CHECKING:
    from yaml import Node

Reader: TypeAlias = "Callable[[Node, str, int], Any]"
"""Reads a value: its node, its name for the reader of a fault, and the line of its key."""


@frozen
class Key:
    """A key of the configuration, with what the reference says about it.

    :ivar meaning: what it sets; the bounds of a L{WholeNumber} are added.
    :ivar default: what holds without it: a value, or words.
    :ivar keys: those of a mapping that its value may be.
    """

    read: Reader
    meaning: str
    default: str | float
    keys: Keys = field(factory=dict)


@frozen
class Section:
    """A key whose value is a mapping; the reference lists the keys of that in its place.

    :ivar entry: C{.<name>} where the user names entries, each of which has these keys.
    """

    read: Reader
    keys: Keys
    entry: str = ""


Keys: TypeAlias = "Mapping[str, Key | Section]"


def section(make: Callable[..., Any], keys: Keys) -> Section:
    """Return a section whose value is what C{make} returns, given the value of each key by its name."""
    return Section(lambda node, name, _line: make(**read_keys(node, name, keys)), keys)


def read_keys(node: Node, where: str, keys: Keys) -> dict[str, Any]:
    """Read what a mapping says of some keys, each by its reader.

    :raises NotConfig: it is no mapping, or has a key that is unknown or said twice, or a value that is not as it must.
    """
    found = entries(node, where or "the file")
    for name, (_, line) in found.items():
        if name not in keys:
            raise NotConfig(f"{where or 'the file'} has an unknown key; it may have: {', '.join(keys)}", line)
    return {
        name: keys[name].read(value, f"{where}.{name}" if where else name, line)
        for name, (value, line) in found.items()
    }


def describe_keys(keys: Keys, before: str = "") -> Iterator[dict[str, str]]:
    """Yield name, meaning and default of each key, in words."""
    for name, key in keys.items():
        if isinstance(key, Section):
            yield from describe_keys(key.keys, f"{before}{name}{key.entry}.")
            continue
        bounds = f", from 1 to {key.read.most}" if isinstance(key.read, WholeNumber) else ""
        default = key.default if isinstance(key.default, str) else json.dumps(key.default).removesuffix(".0")
        yield {"key": before + name, "meaning": key.meaning + bounds, "default": default}
        yield from describe_keys(key.keys, f"{before}{name}.")
