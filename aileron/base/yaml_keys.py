"""The keys of a configuration: what reads each node of YAML, and what the reference of the configuration says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import evolve, field, frozen

from .addresses import read_base_url

if TYPE_CHECKING:
    from yaml import Node

Keyed: TypeAlias = "Mapping[str, tuple[Node, int]]"

_WHOLE = re.compile(r"[1-9][0-9]*")


@frozen
class NotConfig(ValueError):
    """A text that is no configuration.

    :ivar problem: a sentence without its full stop.
    :ivar line: counted from 1; L{None} where no line can be named.
    """

    problem: str
    line: int | None = None


def parse_yaml(text: str) -> Node | None:
    """Return the root of a YAML text; L{None} where it says nothing."""
    # Imported here: most homes have no such file.  Composed and not loaded: the nodes know their lines.
    import yaml

    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise NotConfig(f"this is no YAML: {error.problem or error.context}", line) from None
    except (yaml.YAMLError, ValueError) as error:
        raise NotConfig(f"this is no YAML ({type(error).__name__})") from None
    except RecursionError:
        raise NotConfig("this is nested too deeply") from None


def entries(node: Node, where: str) -> Keyed:
    """Return what a mapping says of whatever keys, each with its key's line.

    :raises NotConfig: it is no mapping, or has a key twice.
    """
    from yaml import MappingNode

    if not isinstance(node, MappingNode):
        raise NotConfig(f"{where} must be a mapping of keys to values", line_of(node))
    found: dict[str, tuple[Node, int]] = {}
    for key, value in node.value:
        name = str(key.value)
        if name in found:
            raise NotConfig(f"{where} has the same key twice", line_of(key))
        found[name] = (value, line_of(key))
    return found


def scalar(node: Node, type_: str) -> str | None:
    """Return the text of a plain value of this YAML type, else L{None}."""
    from yaml import ScalarNode

    return str(node.value) if isinstance(node, ScalarNode) and node.tag == f"tag:yaml.org,2002:{type_}" else None


def items(node: Node, name: str, line: int, most: int, of: str) -> list[Node]:
    """Return the items of a list.

    :param of: what it is a list of, for the message where it is not a list.
    :raises NotConfig: it is no list, or longer than C{most}.
    """
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) > most:
        raise NotConfig(f"{name} must be a list of {of}, {most} at most", line)
    return list(node.value)


def match_text(node: Node, pattern: re.Pattern[str], line: int, problem: str) -> re.Match[str]:
    """Return the match of a text that is to be of C{pattern} as a whole.

    :raises NotConfig: it is no text, or another one: C{problem}.
    """
    found = pattern.fullmatch(scalar(node, "str") or "")
    if found is None:
        raise NotConfig(problem, line)
    return found


def absolute_path(node: Node, name: str, line: int) -> Path:
    """Return an absolute path.

    :raises NotConfig: it is something else.
    """
    text = scalar(node, "str") or ""
    if not Path(text).is_absolute() or "\0" in text:
        raise NotConfig(f"{name} must be an absolute path", line)
    return Path(text)


def base_url(node: Node, name: str, line: int) -> str:
    """Return a base URL, as L{read_base_url} writes it.

    :raises NotConfig: it is something else.
    """
    try:
        return read_base_url(scalar(node, "str") or "").url
    except ValueError as error:
        raise NotConfig(f"{name} {error}", line) from None


@frozen
class WholeNumber:
    """Reads a whole number from 1 to C{most}; raises NotConfig where it is something else."""

    most: int

    def __call__(self, node: Node, name: str, line: int) -> int:
        text = scalar(node, "int")
        if text is None or len(text) > len(str(self.most)) or not _WHOLE.fullmatch(text) or int(text) > self.most:
            raise NotConfig(f"{name} must be a whole number from 1 to {self.most}", line)
        return int(text)


def switch(node: Node, name: str, line: int) -> bool:
    """Return whether something is on.

    :raises NotConfig: it is neither C{true} nor C{false}.
    """
    text = scalar(node, "bool")
    if text not in {"true", "false"}:
        raise NotConfig(f"{name} must be true or false", line)
    return text == "true"


def line_of(node: Node) -> int:
    """Return where it begins, counted from 1."""
    return int(node.start_mark.line) + 1


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

    :ivar make: reads the value: the keys that may stand in it, its node, its name for the reader of a fault, its line.
    :ivar entry: C{.<name>} where the user names entries, each of which has these keys.
    """

    make: Callable[[Keys, Node, str, int], Any]
    keys: Keys
    entry: str = ""

    def read(self, node: Node, name: str, line: int) -> Any:
        """Read the value, as L{Key} reads one."""
        return self.make(self.keys, node, name, line)


Keys: TypeAlias = "Mapping[str, Key | Section]"


def section(make: Callable[..., Any], keys: Keys) -> Section:
    """Return a section whose value is what C{make} returns, given the value of each key by its name."""
    return Section(lambda keys, node, name, _line: make(**read_keys(node, name, keys)), keys)


def with_key(keys: Keys, name: str, key: Key | Section) -> Keys:
    """Return the keys with one more.

    :param name: with the sections that the key is in before it, such as C{gateway.providers.<name>.prefix}.
    :raises KeyError: there is no such section.
    """
    first, _, rest = name.partition(".")
    if not rest:
        return {**keys, name: key}
    around = keys[first]
    if not isinstance(around, Section):
        raise KeyError(first)
    return {**keys, first: evolve(around, keys=with_key(around.keys, rest.removeprefix("<name>."), key))}


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
