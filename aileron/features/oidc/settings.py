"""The key C{oidc} of C{config.yaml}: the provider that people sign in with, and the roles of its groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aileron.base.addresses import may_be_private, read_url
from aileron.base.yaml_keys import (
    Key,
    Keys,
    NotConfig,
    Section,
    WholeNumber,
    entries,
    items,
    line_of,
    match_text,
    read_keys,
    scalar,
    switch,
)
from aileron.credentials import read_endpoint
from aileron.model.people import Role

from .values import OPENID, OidcSettings

if TYPE_CHECKING:
    from yaml import Node

_MOST_ENTRIES = 500
_MOST_MINUTES = 720
_ID = re.compile(r"[\x21-\x7e]{1,255}")
_TITLE = re.compile(r"[^\x00-\x1f\x7f<>&]{1,40}")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")
_CLAIM = re.compile(r"[\x21-\x7e]{1,128}")
_GROUP = re.compile(r"[^\x00-\x1f\x7f]{1,256}")
_EMAIL = re.compile(r"[^\s@A-Z]{1,64}@[a-z0-9.-]{1,190}")
_DOMAIN = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")
_ROLES = ", ".join(Role)
_DEFAULT = OidcSettings("https://login.example.org", "aileron")


def _issuer(node: Node, name: str, line: int) -> str:
    """Return the issuer as it is written, since ID tokens must name exactly the same text.

    :raises NotConfig: if it is no https URL, or has a query, a fragment or user info.
    """
    text = scalar(node, "str") or ""
    try:
        url = read_url(read_endpoint(text))
    except ValueError as error:
        raise NotConfig(f"{name} {error}", line) from None
    if url.query is not None or url.user_info is not None or len(text) > 512:
        raise NotConfig(f"{name} must be the address of a provider, without a query", line)
    return text


def _text(pattern: re.Pattern[str], problem: str) -> Any:
    return lambda node, name, line: match_text(node, pattern, line, f"{name} {problem}")[0]


def _texts(pattern: re.Pattern[str], of: str) -> Any:
    def read(node: Node, name: str, line: int) -> tuple[str, ...]:
        found = items(node, name, line, _MOST_ENTRIES, of)
        return tuple(match_text(each, pattern, line_of(each), f"{name} must be a list of {of}")[0] for each in found)

    return read


def _roles(pattern: re.Pattern[str], problem: str) -> Any:
    def read(node: Node, name: str, line: int) -> Mapping[str, Role]:
        found = entries(node, name)
        if len(found) > _MOST_ENTRIES or not all(map(pattern.fullmatch, found)):
            raise NotConfig(f"{name} {problem}, {_MOST_ENTRIES} at most", line)
        return {each: _role(value, f"{name}.{each}", at) for each, (value, at) in found.items()}

    return read


def _role(node: Node, name: str, line: int) -> Role:
    text = scalar(node, "str") or ""
    if text not in set(Role):
        raise NotConfig(f"{name} must be one of: {_ROLES}", line)
    return Role(text)


def _oidc(keys: Keys, node: Node, name: str, _line: int) -> OidcSettings:
    read: dict[str, Any] = read_keys(node, name, keys)
    for each in ("issuer", "client_id"):
        if each not in read:
            raise NotConfig(f"{name} must have: {each}", line_of(node))
    if not (read.get("roles") or read.get("emails")):
        raise NotConfig(f"{name} must have roles or emails, because otherwise nobody may sign in", line_of(node))
    host = read_url(read["issuer"]).origin.host
    if may_be_private(host) and not read.get("private_network"):
        raise NotConfig(f"{name} needs private_network: true for a provider at a private address", line_of(node))
    if "scopes" in read:
        read["scopes"] = tuple(dict.fromkeys((OPENID, *read["scopes"])))
    return OidcSettings(**read)


_KEYS: Keys = {
    "issuer": Key(
        _issuer, "issuer of the provider, exactly as it names itself, such as `https://login.example.org`", "none"
    ),
    "client_id": Key(_text(_ID, "must be visible ASCII"), "ID under which Aileron is registered there", "none"),
    "title": Key(
        _text(_TITLE, "must be a short text"), "name of the provider on the sign-in page", "the issuer's host"
    ),
    "scopes": Key(
        _texts(_SCOPE, "scopes"),
        "scopes to request; `openid` is always one of them",
        f"`[{', '.join(_DEFAULT.scopes)}]`",
    ),
    "groups_claim": Key(
        _text(_CLAIM, "must be the name of a claim, or a dotted path"),
        "claim of the ID token with the groups: a name, or a path such as `realm_access.roles`",
        f"`{_DEFAULT.groups_claim}`",
    ),
    "roles": Key(
        _roles(_GROUP, "must map groups to roles"),
        "[role of each group](oidc.md#roles): `viewer`, `approver` or `administrator`",
        "none",
    ),
    "emails": Key(
        _roles(_EMAIL, "must map addresses in small letters to roles"),
        "role of single people, by their verified email address",
        "none",
    ),
    "domains": Key(
        _texts(_DOMAIN, "domains in small letters"),
        "domains of which everybody needs a verified email address",
        "every domain",
    ),
    "recheck_minutes": Key(
        WholeNumber(_MOST_MINUTES),
        "minutes after which a login ends [unless the provider has confirmed it again](oidc.md#when-somebody-leaves)",
        _DEFAULT.recheck_minutes,
    ),
    "private_network": Key(switch, "whether the provider may be at a private address", default=False),
}
OIDC = Section(_oidc, _KEYS)
