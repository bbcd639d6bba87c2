"""C{config.yaml}: a closed set of keys. Each error names its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from aileron.base.yaml_keys import (
    Key,
    Keys,
    NotConfig,
    WholeNumber,
    absolute_path,
    entries,
    items,
    line_of,
    match_text,
    parse_yaml,
    read_keys,
    scalar,
    section,
    switch,
)
from aileron.features import FeatureSet
from aileron.model.authority import PendingLimits
from aileron.model.errors import InvalidRequest
from aileron.model.people import MOST_NEEDED, ApproverRule, OperatorRule, is_approver
from aileron.store import read_address

if TYPE_CHECKING:
    from yaml import Node

_NAME = re.compile(r"(?!.{254})[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_PACKAGE = re.compile(r"(?!.{201})[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_CLIENT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_FEATURE = re.compile(r"[a-z][a-z0-9_]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_LISTED = 32
_MOST_UID = 2**32 - 2
_OPERATOR_HOST = re.compile("fresh|localhost")
_DAEMONS = re.compile("one|several")
_LOG_FORMAT = re.compile("text|json")
_ACTION = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\*?|\*", re.ASCII)
_WEBHOOK = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)


@frozen
class AuditSettings:
    """The configuration of the audit log. None means no anchor, and no limit.

    :ivar anchor_file: the file to which each checkpoint is appended.
    :ivar anchor_webhook: the URL to which each checkpoint is posted.
    """

    anchor_file: Path | None = None
    anchor_webhook: str | None = None
    keep_payloads_days: int | None = None


@frozen
class StoreSettings:
    """The place of runs and of the audit log.

    :ivar url: the URL of a database on a PostgreSQL server, or None for the file in the home.
    :ivar password_file: the file with the password for that database.
    :ivar daemons: C{one} if this daemon uses the database alone, or C{several}.
    :ivar lease_seconds: how long one of several daemons may be silent before others take its runs.
    :ivar drain_seconds: how long one of several daemons, once stopped, may finish what it has begun.
    :ivar notice_seconds: how long it answers at least that it is not ready, before it stops.
    """

    url: str | None = None
    password_file: Path | None = None
    daemons: str = "one"
    lease_seconds: int = 15
    drain_seconds: int = 20
    notice_seconds: int = 0


@frozen
class Config:
    """The configuration: the values of the file and the command line, or else the product's defaults.

    :ivar listen: the endpoint string of the agent site, or None for a remembered or free port of loopback.
    :ivar operator_listen: the endpoint string of the operator site, or None as for C{listen}.
    :ivar operator_host: C{fresh} if the pages get a new host name at each start, or C{localhost}.
    :ivar hosts: further host names, without a port, by which clients may call both sites.
    :ivar agent_uids: the user ids of other users whose processes may connect to the agent site.
    :ivar clients: the names of clients that may open their own sessions.
    :ivar connector_packages: the Python packages that are searched for connectors.
    :ivar pending: the limits on pending approvals.
    :ivar approvals: the operator's rules about who approves. Those of the trusted text hold: see L{TrustedRules}.
    :ivar features: True or False for each feature that is switched on or off, by name.
    :ivar of_features: the features' own settings, by key.
    :ivar log: the format of the log, C{text} or C{json}.
    :ivar metrics_token_digest: SHA-256 of a scraper's token, or None if only the operator may read the metrics.
    """

    listen: str | None = None
    operator_listen: str | None = None
    operator_host: str = "fresh"
    hosts: tuple[str, ...] = ()
    agent_uids: tuple[int, ...] = ()
    clients: frozenset[str] = frozenset()
    connector_packages: tuple[str, ...] = ()
    pending: PendingLimits = field(factory=PendingLimits)
    metrics_token_digest: bytes | None = field(default=None, repr=False)
    log: str = "text"
    audit: AuditSettings = field(factory=AuditSettings)
    store: StoreSettings = field(factory=StoreSettings)
    approvals: tuple[OperatorRule, ...] = ()
    features: Mapping[str, bool] = field(factory=dict)
    of_features: Mapping[str, Any] = field(factory=dict)


def read_config(text: str, features: FeatureSet) -> Config:
    """Parse a configuration. An empty text sets nothing.

    The settings of a foreign feature, which are below a key of its name, are not parsed before the feature is loaded.

    :param features: the features whose keys are allowed.
    :raises NotConfig: if the text is not YAML, or a key is unknown, duplicate or has a value of another type.
    """
    root = parse_yaml(text)
    if root is None or scalar(root, "null") is not None:
        return Config()
    of_features = features.settings()
    foreign = read_switches(text).keys() - {each.name for each in features.known}
    keys: Keys = {**dict.fromkeys(foreign, _UNREAD), **config_keys(features)}
    read = read_keys(root, "", keys)
    own = {_FIELDS.get(name, name): value for name, value in read.items() if name in _CORE_KEYS}
    return Config(**own, of_features={name: value for name, value in read.items() if name in of_features})


def config_keys(features: FeatureSet) -> Keys:
    """Return all keys that a configuration may contain, the features' keys last."""
    return {**_CORE_KEYS, **features.settings()}


def read_switches(text: str) -> Mapping[str, bool]:
    """Return the features that a configuration switches on or off, by name. Parse no other key.

    :raises NotConfig: if the text is not YAML, or the switches are malformed.
    """
    root = parse_yaml(text)
    said = {} if root is None or scalar(root, "null") is not None else entries(root, "the file")
    return _features(*said["features"]) if "features" in said else {}


def read_approver_rules(text: str) -> tuple[OperatorRule, ...]:
    """Return the operator's rules about who approves. Parse no other key.

    :raises NotConfig: if the text is not YAML, or the rules are malformed.
    """
    root = parse_yaml(text)
    said = {} if root is None or scalar(root, "null") is not None else entries(root, "the file")
    if "approvals" not in said:
        return ()
    node, line = said["approvals"]
    rules: tuple[OperatorRule, ...] = _CORE_KEYS["approvals"].read(node, "approvals", line)
    return rules


def _features(node: Node, line: int) -> Mapping[str, bool]:
    return {
        _check_feature(name, at): _is_on(value, name, at) for name, (value, at) in entries(node, "features").items()
    }


def _is_on(node: Node, name: str, line: int) -> bool:
    text = scalar(node, "bool")  # YAML parses on and off as booleans
    if text not in {"on", "off", "true", "false"}:
        raise NotConfig(f"features.{name} must be on or off", line)
    return text in {"on", "true"}


def _check_feature(name: str, line: int) -> str:
    if not _FEATURE.fullmatch(name):
        raise NotConfig("each of features must be a name of a-z, 0-9 and _, 32 at most", line)
    return name


def _endpoint(node: Node, name: str, line: int) -> str:
    text = scalar(node, "str") or ""
    if ":" not in text:
        raise NotConfig(f"{name} must be an endpoint, such as tcp:8080:interface=127.0.0.1", line)
    return text


def _operator_host(node: Node, name: str, line: int) -> str:
    return match_text(node, _OPERATOR_HOST, line, f"{name} must be fresh or localhost")[0]


def _hosts(node: Node, name: str, line: int) -> tuple[str, ...]:
    problem = "each of hosts must be a name in lower case, without a port"
    listed = items(node, name, line, _MOST_LISTED, "names")
    return tuple(match_text(each, _NAME, line_of(each), problem)[0] for each in listed)


def _uids(node: Node, name: str, line: int) -> tuple[int, ...]:
    listed, read = items(node, name, line, _MOST_LISTED, "numbers of users"), WholeNumber(_MOST_UID)
    return tuple(read(each, f"each of {name}", line_of(each)) for each in listed)


def _clients(node: Node, name: str, line: int) -> frozenset[str]:
    problem = "each of clients must be a name of a-z, 0-9 and -, 32 at most"
    listed = items(node, name, line, _MOST_LISTED, "names")
    return frozenset(match_text(each, _CLIENT, line_of(each), problem)[0] for each in listed)


def _packages(node: Node, name: str, line: int) -> tuple[str, ...]:
    problem = f"each of {name} must be the name of a Python package, such as acme.connectors"
    listed = items(node, name, line, _MOST_LISTED, "names")
    return tuple(match_text(each, _PACKAGE, line_of(each), problem)[0] for each in listed)


def _digest(node: Node, name: str, line: int) -> bytes:
    text = scalar(node, "str") or scalar(node, "int") or ""  # YAML parses sixty-four digits as a number
    if not _DIGEST.fullmatch(text):
        raise NotConfig(f"{name} must be the token's SHA-256: 64 of 0-9 and a-f", line)
    return bytes.fromhex(text)


def _audit(anchor: Mapping[str, Any] | None = None, **others: Any) -> AuditSettings:
    return AuditSettings(**{f"anchor_{key}": value for key, value in (anchor or {}).items()}, **others)


def _rules(node: Node, name: str, line: int) -> tuple[OperatorRule, ...]:
    return tuple(
        _rule(each, f"each of {name}", line_of(each)) for each in items(node, name, line, _MOST_LISTED, "rules")
    )


def _rule(node: Node, name: str, line: int) -> OperatorRule:
    read = read_keys(node, name, _OF_RULE)
    if "action" not in read:
        raise NotConfig(f"{name} must have the key action", line)
    by = read.get("by", ())
    rule = ApproverRule((by,) if by else (), read.get("not_requester", False), read.get("count", 1))
    return OperatorRule(read["action"], rule)


def _action(node: Node, name: str, line: int) -> str:
    problem = (
        f"{name} must be the name of an action, such as send_mail, or the beginning of names and *, such as mail_*"
    )
    return match_text(node, _ACTION, line, problem)[0]


def _approvers(node: Node, name: str, line: int) -> tuple[str, ...]:
    names = [scalar(each, "str") or "" for each in items(node, name, line, _MOST_LISTED, "names")]
    for each in names:
        if not is_approver(each):
            raise NotConfig(
                f"{name} must be names of accounts, roles that decide, or groups, such as group:finance", line
            )
    if not names:
        raise NotConfig(f"{name} must have a name", line)
    return tuple(names)


def _webhook(node: Node, name: str, line: int) -> str:
    return match_text(node, _WEBHOOK, line, f"{name} must be an address such as https://example.com/anchor")[0]


def _database(node: Node, name: str, line: int) -> str:
    url = scalar(node, "str") or ""
    try:
        return read_address(url).url
    except InvalidRequest as error:
        raise NotConfig(f"{name} is not possible: {error.message}", line) from None


def _daemons(node: Node, name: str, line: int) -> str:
    return match_text(node, _DAEMONS, line, f"{name} must be one or several")[0]


def _log_format(node: Node, name: str, line: int) -> str:
    return match_text(node, _LOG_FORMAT, line, f"{name} must be text or json")[0]


_PENDING = PendingLimits()
_MOST = WholeNumber(1_000_000)
_OF_PENDING: Keys = {
    "per_session": Key(_MOST, "how many approvals of one agent session may be pending", _PENDING.per_session),
    "per_home": Key(_MOST, "how many approvals may be pending in total", _PENDING.per_home),
    "per_action": Key(_MOST, "how many approvals of one action may be pending", _PENDING.per_action),
}
_OF_METRICS: Keys = {
    "token_sha256": Key(_digest, "SHA-256, in hexadecimal, of a token that may only read `/metrics`", "you alone may")
}
_OF_LOG: Keys = {
    "format": Key(
        _log_format, "`text`, or `json` for [one JSON object a line](monitoring.md#the-log-as-json)", "`text`"
    ),
}
_OF_ANCHOR: Keys = {
    "file": Key(absolute_path, "absolute path of a file to which checkpoints of the audit log are appended", "none"),
    "webhook": Key(_webhook, "address to which checkpoints of the audit log are posted", "none"),
}
_OF_AUDIT: Keys = {
    "keep_payloads_days": Key(WholeNumber(36_500), "days after which events keep only who, what and when", "never"),
    "anchor": section(dict, _OF_ANCHOR),
}
_OF_RULE: Keys = {
    "action": Key(_action, "name of an action, or the beginning of names and `*`, such as `pay_*`", "must be set"),
    "by": Key(
        _approvers, "accounts, roles and groups that may approve, such as `group:finance`", "anyone who may decide"
    ),
    "count": Key(WholeNumber(MOST_NEEDED), "how many different people must approve", 1),
    "not_requester": Key(switch, "whether somebody else than the requester must approve", "`false`"),
}
_OF_APPROVALS: Keys = {
    "rules": Key(
        _rules,
        "list of rules about [who may approve](team.md#rules-of-your-own), beside those of action files",
        "none",
        _OF_RULE,
    ),
}
_OF_STORE: Keys = {
    "url": Key(
        _database,
        "database on a [PostgreSQL server](postgresql.md), such as `postgresql://aileron@db.example.org/aileron`",
        "the file `aileron.db` in the home",
    ),
    "password_file": Key(absolute_path, "absolute path of a file of yours with the password for it", "none"),
    "daemons": Key(_daemons, "whether `one` daemon uses that database, or [`several`](several-daemons.md)", "`one`"),
    "lease_seconds": Key(
        WholeNumber(3600), "seconds after which the others take the runs of a silent one of several daemons", 15
    ),
    "drain_seconds": Key(
        WholeNumber(600), "seconds for which one of several daemons, once stopped, finishes what it has begun", 20
    ),
    "notice_seconds": Key(
        WholeNumber(60), "seconds for which it answers at least that it is not ready, for a balancer that asks", 0
    ),
}
_CORE_KEYS: Keys = {
    "listen": Key(_endpoint, "where agents are served: a Twisted endpoint", "a port of 127.0.0.1, as last time"),
    "operator_listen": Key(_endpoint, "where you are served: a Twisted endpoint", "a port of localhost, as last time"),
    "operator_host": Key(_operator_host, "host of your pages: a `fresh` one at each start, or `localhost`", "`fresh`"),
    "hosts": Key(_hosts, "further names of both sites, in lower case and without a port", "the address listened at"),
    "agent_uids": Key(_uids, "other users, by number, whose processes may use the agent site (Linux)", "you alone"),
    "clients": Key(_clients, "names, of a-z, 0-9 and `-`, by which MCP clients may open a session themselves", "none"),
    "connector_packages": Key(
        _packages, "Python packages, as `acme.connectors`, that provide connectors or kinds of connector", "none"
    ),
    "features": Key(
        lambda node, name, line: _features(node, line),
        "features that are `off`, by name, such as `egress: off`; those of other packages that are `on`",
        "all that ship with Aileron are on",
    ),
    "pending": section(PendingLimits, _OF_PENDING),
    "metrics": section(lambda token_sha256=None: token_sha256, _OF_METRICS),
    "log": section(lambda **keys: keys.get("format", "text"), _OF_LOG),
    "approvals": section(lambda rules=(): rules, _OF_APPROVALS),
    "audit": section(_audit, _OF_AUDIT),
    "store": section(StoreSettings, _OF_STORE),
}
_FIELDS = {"metrics": "metrics_token_digest"}
"""The fields of L{Config} whose name differs from the key."""

_UNREAD = Key(lambda node, name, line: None, "", "")
"""The key of settings of a feature that is not loaded; the settings are not parsed."""
