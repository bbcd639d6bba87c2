"""YAML as nodes that know their lines: mappings of known keys, and plain values; each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

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


def parsed(text: str) -> Node | None:
    """The root of a YAML text; L{None} where it says nothing."""
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


def keys(node: Node, where: str, known: tuple[str, ...]) -> Keyed:
    """What a mapping says of some keys, each with its key's line.

    :raises NotConfig: it is no mapping, or has a key that is unknown or said twice.
    """
    found = entries(node, where)
    for name, (_, line) in found.items():
        if name not in known:
            raise NotConfig(f"{where} has an unknown key; it may have: {', '.join(known)}", line)
    return found


def entries(node: Node, where: str) -> Keyed:
    """What a mapping says of whatever keys, each with its key's line.

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
    """The text of a plain value of this YAML type, else L{None}."""
    from yaml import ScalarNode

    return str(node.value) if isinstance(node, ScalarNode) and node.tag == f"tag:yaml.org,2002:{type_}" else None


def number(node: Node, name: str, line: int, most: int) -> int:
    """A whole number from 1 to C{most}.

    :raises NotConfig: it is something else.
    """
    text = scalar(node, "int")
    if text is None or len(text) > len(str(most)) or not _WHOLE.fullmatch(text) or int(text) > most:
        raise NotConfig(f"{name} must be a whole number from 1 to {most}", line)
    return int(text)


def switch(node: Node, name: str, line: int) -> bool:
    """Whether something is on.

    :raises NotConfig: it is neither C{true} nor C{false}.
    """
    text = scalar(node, "bool")
    if text not in {"true", "false"}:
        raise NotConfig(f"{name} must be true or false", line)
    return text == "true"


def line_of(node: Node) -> int:
    """Where it begins, counted from 1."""
    return int(node.start_mark.line) + 1
