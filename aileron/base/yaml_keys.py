"""The keys of the configuration file: parsers of their YAML values, and the texts of the configuration reference."""

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
    """Raised if a text is not a valid configuration.

    :ivar problem: the reason, a sentence without its full stop.
    :ivar line: the line counted from 1, or None if it is unknown.
    """

    problem: str
    line: int | None = None


def parse_yaml(text: str) -> Node | None:
    """Return the root node of a YAML text, or None if the text is empty.

    :raises NotConfig: if the text is not YAML or is nested too deeply.
    """
    # Imported here: most homes have no such file. Composed and not loaded, because nodes have line numbers.
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
    """Return the entries of a mapping with any keys: for each key, the value's node and the key's line.

    :raises NotConfig: if the node is not a mapping, or repeats a key.
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
    """Return the text of a scalar of this YAML type, or None if the node is another one."""
    from yaml import ScalarNode

    return str(node.value) if isinstance(node, ScalarNode) and node.tag == f"tag:yaml.org,2002:{type_}" else None


def items(node: Node, name: str, line: int, most: int, of: str) -> list[Node]:
    """Return the items of a list.

    :param of: the kind of the items, for the message.
    :raises NotConfig: if the node is not a list, or is longer than C{most}.
    """
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) > most:
        raise NotConfig(f"{name} must be a list of {of}, {most} at most", line)
    return list(node.value)


def match_text(node: Node, pattern: re.Pattern[str], line: int, problem: str) -> re.Match[str]:
    """Return the match of a text that C{pattern} must match completely.

    :raises NotConfig: if the node is not a text or does not match. The message is C{problem}.
    """
    found = pattern.fullmatch(scalar(node, "str") or "")
    if found is None:
        raise NotConfig(problem, line)
    return found


def absolute_path(node: Node, name: str, line: int) -> Path:
    """Return an absolute path.

    :raises NotConfig: if the node is not an absolute path.
    """
    text = scalar(node, "str") or ""
    if not Path(text).is_absolute() or "\0" in text:
        raise NotConfig(f"{name} must be an absolute path", line)
    return Path(text)


def base_url(node: Node, name: str, line: int) -> str:
    """Return a base URL in its normalized form.

    :raises NotConfig: if the node is not a base URL, as L{read_base_url} accepts it.
    """
    try:
        return read_base_url(scalar(node, "str") or "").url
    except ValueError as error:
        raise NotConfig(f"{name} {error}", line) from None


@frozen
class WholeNumber:
    """A reader of whole numbers from 1 to C{most}, which raises L{NotConfig} for other values."""

    most: int

    def __call__(self, node: Node, name: str, line: int) -> int:
        text = scalar(node, "int")
        if text is None or len(text) > len(str(self.most)) or not _WHOLE.fullmatch(text) or int(text) > self.most:
            raise NotConfig(f"{name} must be a whole number from 1 to {self.most}", line)
        return int(text)


def switch(node: Node, name: str, line: int) -> bool:
    """Return a boolean.

    :raises NotConfig: if the value is neither C{true} nor C{false}.
    """
    text = scalar(node, "bool")
    if text not in {"true", "false"}:
        raise NotConfig(f"{name} must be true or false", line)
    return text == "true"


def line_of(node: Node) -> int:
    """Return the line at which a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


Reader: TypeAlias = "Callable[[Node, str, int], Any]"
"""A reader of a value, called with its node, its name for error messages and the line of its key."""


@frozen
class Key:
    """A key of the configuration file, and the text about it in the configuration reference.

    :ivar read: parses the value.
    :ivar meaning: the description of the key. The limits of a L{WholeNumber} are added.
    :ivar default: the value that applies if the key is missing, or a description of it.
    :ivar keys: the keys of the value if it may be a mapping.
    """

    read: Reader
    meaning: str
    default: str | float
    keys: Keys = field(factory=dict)


@frozen
class Section:
    """A key whose value is a mapping.  The reference lists the mapping's keys in its place.

    :ivar make: returns the value, from the allowed keys, the node, the name for error messages and the line.
    :ivar entry: C{.<name>} if the user names entries that each have these keys.
    """

    make: Callable[[Keys, Node, str, int], Any]
    keys: Keys
    entry: str = ""

    def read(self, node: Node, name: str, line: int) -> Any:
        """Parse the YAML mapping C{node}, and return the object that is built from its keys."""
        return self.make(self.keys, node, name, line)


Keys: TypeAlias = "Mapping[str, Key | Section]"


def section(make: Callable[..., Any], keys: Keys) -> Section:
    """Return a section whose value is C{make} called with the value of each key by its name."""
    return Section(lambda keys, node, name, _line: make(**read_keys(node, name, keys)), keys)


def with_key(keys: Keys, name: str, key: Key | Section) -> Keys:
    """Return C{keys} with one more key.

    :param name: the name of the key preceded by its sections, such as C{gateway.providers.<name>.prefix}.
    :raises KeyError: if there is no such section.
    """
    first, _, rest = name.partition(".")
    if not rest:
        return {**keys, name: key}
    around = keys[first]
    if not isinstance(around, Section):
        raise KeyError(first)
    return {**keys, first: evolve(around, keys=with_key(around.keys, rest.removeprefix("<name>."), key))}


def read_keys(node: Node, where: str, keys: Keys) -> dict[str, Any]:
    """Return the values of a mapping with the given keys, each read by its reader.

    :raises NotConfig: if the node is not a mapping, a key is unknown or repeated, or a value is invalid.
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
    """Yield the name, meaning and default of each key, in words."""
    for name, key in keys.items():
        if isinstance(key, Section):
            yield from describe_keys(key.keys, f"{before}{name}{key.entry}.")
            continue
        bounds = f", from 1 to {key.read.most}" if isinstance(key.read, WholeNumber) else ""
        default = key.default if isinstance(key.default, str) else json.dumps(key.default).removesuffix(".0")
        yield {"key": before + name, "meaning": key.meaning + bounds, "default": default}
        yield from describe_keys(key.keys, f"{before}{name}.")
