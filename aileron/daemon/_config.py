"""C{config.yaml}: a closed set of keys, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from aileron.values import GatewaySettings, McpSettings, NoticeSettings, PendingLimits

from ._config_gateway import read_gateway
from ._config_notices import read_notices
from ._nodes import (
    NotConfig,
    Reader,
    absolute_path,
    items,
    line_of,
    match_text,
    parse_yaml,
    read_keys,
    scalar,
    switch,
    whole_number,
)

if TYPE_CHECKING:
    from yaml import Node

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_CLIENT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_NAME = 253
_MOST_LISTED = 32
_MOST_UID = 2**32 - 2
_MOST_PENDING = 1_000_000
_MOST_DAYS = 36_500
_WEBHOOK = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)


@frozen
class AuditSettings:
    """The anchors of the record, and how long its contents are kept; L{None}: none, and for ever.

    :ivar anchor_file: to which each checkpoint is appended.
    :ivar anchor_webhook: to which each is posted.
    """

    anchor_file: Path | None = None
    anchor_webhook: str | None = None
    keep_payloads_days: int | None = None


@frozen
class Config:
    """The configuration: what file and command line say, and the product's own defaults where they say nothing.

    :ivar listen: endpoint string of the agent site; L{None}: a remembered or free port of loopback.
    :ivar operator_listen: of the operator site.
    :ivar hosts: further names, without a port, by which clients may call both.
    :ivar agent_uids: other users, by number, whose processes may speak to the agent site.
    :ivar clients: names of clients that may open a session for themselves.
    :ivar pending: how many approvals may wait.
    :ivar metrics_token_digest: SHA-256 of a scraper's token; L{None}: the operator alone gets the metrics.
    """

    listen: str | None = None
    operator_listen: str | None = None
    hosts: tuple[str, ...] = ()
    agent_uids: tuple[int, ...] = ()
    clients: frozenset[str] = frozenset()
    pending: PendingLimits = field(factory=PendingLimits)
    gateway: GatewaySettings = field(factory=GatewaySettings)
    metrics_token_digest: bytes | None = field(default=None, repr=False)
    audit: AuditSettings = field(factory=AuditSettings)
    notices: NoticeSettings = field(factory=NoticeSettings)
    mcp: McpSettings = field(factory=McpSettings)


def read_config(text: str) -> Config:
    """Read a configuration; an empty one says nothing.

    :raises NotConfig: it is no YAML, or has a key that is unknown, said twice, or of another type.
    """
    root = parse_yaml(text)
    if root is None or scalar(root, "null") is not None:
        return Config()
    read = read_keys(root, "", _READERS)
    return Config(**{_FIELDS.get(name, name): value for name, value in read.items()})


def _endpoint(node: Node, name: str, line: int) -> str:
    text = scalar(node, "str") or ""
    if ":" not in text:
        raise NotConfig(f"{name} must be an endpoint, such as tcp:8080:interface=127.0.0.1", line)
    return text


def _hosts(node: Node, name: str, line: int) -> tuple[str, ...]:
    problem = "each of hosts must be a name in lower case, without a port"
    listed = items(node, name, line, _MOST_LISTED, "names")
    found = tuple(match_text(each, _NAME, line_of(each), problem)[0] for each in listed)
    if any(len(each) > _MOST_NAME for each in found):
        raise NotConfig(problem, line)
    return found


def _uids(node: Node, name: str, line: int) -> tuple[int, ...]:
    listed, read = items(node, name, line, _MOST_LISTED, "numbers of users"), whole_number(_MOST_UID)
    return tuple(read(each, f"each of {name}", line_of(each)) for each in listed)


def _clients(node: Node, name: str, line: int) -> frozenset[str]:
    problem = "each of clients must be a name of a-z, 0-9 and -, 32 at most"
    listed = items(node, name, line, _MOST_LISTED, "names")
    return frozenset(match_text(each, _CLIENT, line_of(each), problem)[0] for each in listed)


def _read_pending(node: Node, name: str, _line: int) -> PendingLimits:
    most = whole_number(_MOST_PENDING)
    return PendingLimits(**read_keys(node, name, dict.fromkeys(("per_session", "per_home", "per_action"), most)))


def _metrics(node: Node, name: str, _line: int) -> bytes | None:
    digest: bytes | None = read_keys(node, name, {"token_sha256": _digest}).get("token_sha256")
    return digest


def _digest(node: Node, name: str, line: int) -> bytes:
    text = scalar(node, "str") or scalar(node, "int") or ""  # sixty-four digits are a number to YAML
    if not _DIGEST.fullmatch(text):
        raise NotConfig(f"{name} must be the token's SHA-256: 64 of 0-9 and a-f", line)
    return bytes.fromhex(text)


def _audit(node: Node, name: str, _line: int) -> AuditSettings:
    read = read_keys(node, name, {"anchor": _anchor, "keep_payloads_days": whole_number(_MOST_DAYS)})
    return AuditSettings(**read.pop("anchor", {}), **read)


def _anchor(node: Node, name: str, _line: int) -> dict[str, Any]:
    read = read_keys(node, name, {"file": absolute_path, "webhook": _webhook})
    return {f"anchor_{key}": value for key, value in read.items()}


def _webhook(node: Node, name: str, line: int) -> str:
    return match_text(node, _WEBHOOK, line, f"{name} must be an address such as https://example.com/anchor")[0]


def _mcp(node: Node, name: str, _line: int) -> McpSettings:
    return McpSettings(**read_keys(node, name, _OF_MCP))


_OF_MCP: Mapping[str, Reader] = {
    "http": switch,
    "sessions": whole_number(1000),
    "idle_seconds": whole_number(86_400),
    "listed_actions": whole_number(1000),
}
_READERS: Mapping[str, Reader] = {
    "listen": _endpoint,
    "operator_listen": _endpoint,
    "hosts": _hosts,
    "agent_uids": _uids,
    "clients": _clients,
    "pending": _read_pending,
    "gateway": read_gateway,
    "metrics": _metrics,
    "audit": _audit,
    "notifications": read_notices,
    "mcp": _mcp,
}
_FIELDS = {"metrics": "metrics_token_digest", "notifications": "notices"}
"""The fields of L{Config} that have another name than the key."""
