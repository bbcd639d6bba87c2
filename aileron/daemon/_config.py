"""C{config.yaml}: a closed set of keys, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import asdict, frozen

from aileron.values import GatewaySettings, PendingLimits

if TYPE_CHECKING:
    from yaml import Node

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_MOST_NAME = 253
_MOST_HOSTS = 32
_MOST_PENDING = 1_000_000


@frozen
class NotConfig(ValueError):
    """A text that is no configuration.

    :ivar problem: a sentence without its full stop.
    :ivar line: counted from 1; L{None} where no line can be named.
    """

    problem: str
    line: int | None = None


@frozen
class Config:
    """What was said, by file or command line; L{None}: nothing was.

    :ivar listen: endpoint string of the agent site.
    :ivar operator_listen: of the operator site.
    :ivar hosts: further names, without a port, by which clients may call both.
    :ivar gateway: whole: what the file says of it, and defaults for the rest.
    :ivar metrics_token_digest: SHA-256 of a scraper's token.
    """

    listen: str | None = None
    operator_listen: str | None = None
    hosts: tuple[str, ...] | None = None
    per_session: int | None = None
    per_home: int | None = None
    per_action: int | None = None
    gateway: GatewaySettings | None = None
    metrics_token_digest: bytes | None = None

    def over(self, other: Config) -> Config:
        """This, and where it says nothing the other."""
        mine = {name: said for name, said in asdict(self, recurse=False).items() if said is not None}
        return Config(**{**asdict(other, recurse=False), **mine})

    def limits(self) -> PendingLimits:
        """How many may wait; the product's own numbers where nothing was said."""
        said = {"per_session": self.per_session, "per_home": self.per_home, "per_action": self.per_action}
        return PendingLimits(**{name: number for name, number in said.items() if number is not None})


def read_config(text: str) -> Config:
    """Read a configuration; an empty one says nothing.

    :raises NotConfig: it is no YAML, or has a key that is unknown, said twice, or of another type.
    """
    return Config(**dict(_settings(_parsed(text))))


def _parsed(text: str) -> Node | None:
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


def _settings(root: Node | None) -> Iterator[tuple[str, Any]]:
    if root is None or _scalar(root, "null") is not None:
        return
    for name, (node, line) in _keys(root, "the file", (*_READERS, "pending")).items():
        if name == "pending":
            for limit, (number, at) in _keys(node, "pending", ("per_session", "per_home", "per_action")).items():
                yield limit, _number(number, f"pending.{limit}", at)
        else:
            yield name, _READERS[name](node, name, line)


def _keys(node: Node, where: str, known: tuple[str, ...]) -> Mapping[str, tuple[Node, int]]:
    from yaml import MappingNode

    if not isinstance(node, MappingNode):
        raise NotConfig(f"{where} must be a mapping of keys to values", _line(node))
    found: dict[str, tuple[Node, int]] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in known:
            raise NotConfig(f"{where} has an unknown key; it may have: {', '.join(known)}", _line(key))
        if name in found:
            raise NotConfig(f"{name} is said twice", _line(key))
        found[name] = (value, _line(key))
    return found


def _scalar(node: Node, type_: str) -> str | None:
    from yaml import ScalarNode

    return str(node.value) if isinstance(node, ScalarNode) and node.tag == f"tag:yaml.org,2002:{type_}" else None


def _endpoint(node: Node, name: str, line: int) -> str:
    text = _scalar(node, "str")
    if not text or ":" not in text:
        raise NotConfig(f"{name} must be an endpoint, such as tcp:8080:interface=127.0.0.1", line)
    return text


def _hosts(node: Node, name: str, line: int) -> tuple[str, ...]:
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) > _MOST_HOSTS:
        raise NotConfig(f"{name} must be a list of names, {_MOST_HOSTS} at most", line)
    return tuple(_host(each) for each in node.value)


def _host(node: Node) -> str:
    text = _scalar(node, "str")
    if text is None or len(text) > _MOST_NAME or not _NAME.fullmatch(text):
        raise NotConfig("each of hosts must be a name in lower case, without a port", _line(node))
    return text


def _number(node: Node, name: str, line: int) -> int:
    text = _scalar(node, "int")
    if text is None or not text.isascii() or not text.isdecimal() or not 1 <= int(text[:8]) <= _MOST_PENDING:
        raise NotConfig(f"{name} must be a whole number from 1 to {_MOST_PENDING}", line)
    return int(text)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


_Reader: TypeAlias = Callable[["Node", str, int], Any]
_READERS: Mapping[str, _Reader] = {"listen": _endpoint, "operator_listen": _endpoint, "hosts": _hosts}
