"""C{config.yaml}: a closed set of keys, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import asdict, field, frozen

from aileron.values import GatewaySettings, McpSettings, NoticeSettings, PendingLimits

from ._config_gateway import gateway
from ._config_mcp import mcp
from ._config_notices import notices
from ._nodes import NotConfig, keys, line_of, number, parsed, scalar

if TYPE_CHECKING:
    from yaml import Node

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_CLIENT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_NAME = 253
_MOST_HOSTS = 32
_MOST_UID = 2**32 - 2
_MOST_PENDING = 1_000_000
_MOST_DAYS = 36_500
_WEBHOOK = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)


@frozen
class AuditSettings:
    """Where the record is anchored, and how long its contents are kept; L{None}: nowhere, and for ever.

    :ivar anchor_file: to which each checkpoint is appended.
    :ivar anchor_webhook: to which each is posted.
    """

    anchor_file: Path | None = None
    anchor_webhook: str | None = None
    keep_payloads_days: int | None = None


@frozen
class Config:
    """What was said, by file or command line; L{None}: nothing was.

    :ivar listen: endpoint string of the agent site.
    :ivar operator_listen: of the operator site.
    :ivar hosts: further names, without a port, by which clients may call both.
    :ivar agent_uids: other users, by number, whose processes may speak to the agent site.
    :ivar clients: names of clients that may open a session for themselves.
    :ivar gateway: whole: what the file says of it, and defaults for the rest.
    :ivar metrics_token_digest: SHA-256 of a scraper's token.
    :ivar audit: whole: what the file says of the record.
    :ivar notices: whole: what the file says of notifications.
    :ivar mcp: whole: what the file says of MCP over HTTP.
    """

    listen: str | None = None
    operator_listen: str | None = None
    hosts: tuple[str, ...] | None = None
    agent_uids: tuple[int, ...] | None = None
    per_session: int | None = None
    per_home: int | None = None
    per_action: int | None = None
    gateway: GatewaySettings | None = None
    metrics_token_digest: bytes | None = field(default=None, repr=False)
    audit: AuditSettings | None = None
    notices: NoticeSettings | None = None
    mcp: McpSettings | None = None
    clients: tuple[str, ...] | None = None

    def over(self, other: Config) -> Config:
        """This, and where it says nothing the other."""
        mine = {name: said for name, said in asdict(self, recurse=False).items() if said is not None}
        return Config(**{**asdict(other, recurse=False), **mine})

    def limits(self) -> PendingLimits:
        """How many may wait; the product's own numbers where nothing was said."""
        said = {"per_session": self.per_session, "per_home": self.per_home, "per_action": self.per_action}
        return PendingLimits(**{name: most for name, most in said.items() if most is not None})


def read_config(text: str) -> Config:
    """Read a configuration; an empty one says nothing.

    :raises NotConfig: it is no YAML, or has a key that is unknown, said twice, or of another type.
    """
    return Config(**dict(_settings(parsed(text))))


def _settings(root: Node | None) -> Iterator[tuple[str, Any]]:
    if root is None or scalar(root, "null") is not None:
        return
    for name, (node, line) in keys(root, "the file", (*_READERS, *_PARTS)).items():
        if name in _PARTS:
            yield from _PARTS[name](node)
        else:
            yield name, _READERS[name](node, name, line)


def _endpoint(node: Node, name: str, line: int) -> str:
    text = scalar(node, "str")
    if not text or ":" not in text:
        raise NotConfig(f"{name} must be an endpoint, such as tcp:8080:interface=127.0.0.1", line)
    return text


def _hosts(node: Node, name: str, line: int) -> tuple[str, ...]:
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) > _MOST_HOSTS:
        raise NotConfig(f"{name} must be a list of names, {_MOST_HOSTS} at most", line)
    return tuple(_host(each) for each in node.value)


def _host(node: Node) -> str:
    text = scalar(node, "str")
    if text is None or len(text) > _MOST_NAME or not _NAME.fullmatch(text):
        raise NotConfig("each of hosts must be a name in lower case, without a port", line_of(node))
    return text


def _uids(node: Node, name: str, line: int) -> tuple[int, ...]:
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) > _MOST_HOSTS:
        raise NotConfig(f"{name} must be a list of numbers of users, {_MOST_HOSTS} at most", line)
    return tuple(number(each, f"each of {name}", line_of(each), _MOST_UID) for each in node.value)


def _clients(node: Node, name: str, line: int) -> tuple[str, ...]:
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) > _MOST_HOSTS:
        raise NotConfig(f"{name} must be a list of names, {_MOST_HOSTS} at most", line)
    return tuple(_client(each) for each in node.value)


def _client(node: Node) -> str:
    text = scalar(node, "str")
    if text is None or not _CLIENT.fullmatch(text):
        raise NotConfig("each of clients must be a name of a-z, 0-9 and -, 32 at most", line_of(node))
    return text


def _pending(node: Node) -> Iterator[tuple[str, int]]:
    for limit, (most, line) in keys(node, "pending", ("per_session", "per_home", "per_action")).items():
        yield limit, number(most, f"pending.{limit}", line, _MOST_PENDING)


def _gateway(node: Node) -> Iterator[tuple[str, GatewaySettings]]:
    yield "gateway", gateway(node)


def _notices(node: Node) -> Iterator[tuple[str, NoticeSettings]]:
    yield "notices", notices(node)


def _mcp(node: Node) -> Iterator[tuple[str, McpSettings]]:
    yield "mcp", mcp(node)


def _metrics(node: Node) -> Iterator[tuple[str, bytes]]:
    for digest, line in keys(node, "metrics", ("token_sha256",)).values():
        text = scalar(digest, "str") or scalar(digest, "int") or ""  # sixty-four digits are a number to YAML
        if not _DIGEST.fullmatch(text):
            raise NotConfig("metrics.token_sha256 must be the token's SHA-256: 64 of 0-9 and a-f", line)
        yield "metrics_token_digest", bytes.fromhex(text)


def _audit(node: Node) -> Iterator[tuple[str, AuditSettings]]:
    said: dict[str, Any] = {}
    for name, (part, line) in keys(node, "audit", ("anchor", "keep_payloads_days")).items():
        if name == "anchor":
            said |= dict(_anchor(part, f"audit.{name}"))
        else:
            said[name] = number(part, f"audit.{name}", line, _MOST_DAYS)
    yield "audit", AuditSettings(**said)


def _anchor(node: Node, where: str) -> Iterator[tuple[str, Any]]:
    for name, (part, line) in keys(node, where, ("file", "webhook")).items():
        text = scalar(part, "str") or ""
        if name == "file":
            if not Path(text).is_absolute() or "\0" in text:
                raise NotConfig("audit.anchor.file must be an absolute path", line)
            yield "anchor_file", Path(text)
        else:
            if not _WEBHOOK.fullmatch(text):
                raise NotConfig("audit.anchor.webhook must be an address such as https://example.com/anchor", line)
            yield "anchor_webhook", text


_Reader: TypeAlias = Callable[["Node", str, int], Any]
_READERS: Mapping[str, _Reader] = {
    "listen": _endpoint,
    "operator_listen": _endpoint,
    "hosts": _hosts,
    "agent_uids": _uids,
    "clients": _clients,
}
_PARTS: Mapping[str, Callable[[Node], Iterator[tuple[str, Any]]]] = {
    "pending": _pending,
    "gateway": _gateway,
    "metrics": _metrics,
    "audit": _audit,
    "notifications": _notices,
    "mcp": _mcp,
}
