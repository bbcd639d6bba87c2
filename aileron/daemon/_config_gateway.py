"""Reads what C{config.yaml} says of the gateway: which providers there are, where, and how they are spoken to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from aileron.addresses import read_certificates
from aileron.credentials import DEFAULT_KIND
from aileron.values import BUILT_IN_PROVIDERS, Dialect, GatewaySettings, Provider, UpstreamSource

from ._nodes import NotConfig, Reader, base_url, entries, line_of, match_text, read_keys, scalar, switch, whole_number

if TYPE_CHECKING:
    from yaml import Node

TAKEN = frozenset(("v1", "api", "s", "mcp", "metrics"))
"""First segments that are other routes' of the same site."""

_BUILT_IN: Mapping[str, Provider] = {each.name: each for each in BUILT_IN_PROVIDERS}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_PREFIX = re.compile(r"(/[a-z0-9_-][a-z0-9_.-]*){1,8}")
_CREDENTIAL = re.compile(r"vault:([a-z0-9_]{1,32}/[a-z0-9][a-z0-9_.-]{0,62}/[A-Za-z0-9][A-Za-z0-9_.@+-]{0,126})")
_MOST_PREFIX = 128
_MOST_PROVIDERS = 32
_MOST_SILENCE = 86_400
_MOST_BODY = 2**40
_MOST_PEM = 2**18


def read_gateway(node: Node, name: str, _line: int) -> GatewaySettings:
    """Read the part of the gateway.

    :raises NotConfig: a key is unknown, said twice, of another type or out of its bounds, or two prefixes collide.
    """
    read = read_keys(node, name, _READERS)
    providers = {**_BUILT_IN, **read.pop("providers", {})}
    return GatewaySettings(providers=tuple(providers.values()), **read)


def _providers(node: Node, where: str, _line: int) -> dict[str, Provider]:
    said = entries(node, where)
    if len(said) > _MOST_PROVIDERS:
        raise NotConfig(f"{where} may have {_MOST_PROVIDERS} entries at most", line_of(node))
    served = {each.prefix for each in _BUILT_IN.values() if each.name not in said}
    found: dict[str, Provider] = {}
    for name, (value, line) in said.items():
        found[name] = _provider(name, value, line)
        if any(_is_nested(found[name].prefix, prefix) for prefix in served):
            raise NotConfig("the prefix of a provider must not be, begin or continue another's", line)
        served.add(found[name].prefix)
    return found


def _is_nested(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _provider(name: str, node: Node, line: int) -> Provider:
    if not _NAME.fullmatch(name):
        raise NotConfig("a provider's name must be of a-z, 0-9 and -, begin with a letter, 32 at most", line)
    where = f"gateway.providers.{name}"
    read = read_keys(node, where, _OF_PROVIDER)
    if "base_url" in read:
        read["source"] = UpstreamSource.CONFIG
    elif name not in _BUILT_IN:
        raise NotConfig(f"{where} must have a base_url", line)
    provider = evolve(_BUILT_IN.get(name, Provider(name, "", f"/{name}")), **read)
    if provider.prefix.split("/")[1] in TAKEN:
        raise NotConfig(f"{where} needs another prefix: the site has these for itself: {_join_sorted(TAKEN)}", line)
    return provider


def _prefix(node: Node, name: str, line: int) -> str:
    text = scalar(node, "str") or ""
    if len(text) > _MOST_PREFIX or not _PREFIX.fullmatch(text):
        raise NotConfig(f"{name} must be a plain path in lower case, such as /groq, without a slash at its end", line)
    return text


def _dialect(node: Node, name: str, line: int) -> Dialect:
    text = scalar(node, "str")
    if text not in set(Dialect):
        raise NotConfig(f"{name} must be one of: {_join_sorted(Dialect)}", line)
    return Dialect(text)


def _credential(node: Node, name: str, line: int) -> str:
    problem = f"{name} must name a binding, such as vault:{DEFAULT_KIND}/openai/default"
    return match_text(node, _CREDENTIAL, line, problem)[1]


def _silence(node: Node, name: str, line: int) -> float:
    return float(whole_number(_MOST_SILENCE)(node, name, line))


def _certificates(node: Node, name: str, line: int) -> str:
    """Return the certificates alone, without anything else that the file holds."""
    text = scalar(node, "str") or ""
    if len(text) > _MOST_PEM:
        raise NotConfig(f"{name} must have {_MOST_PEM} characters at most", line)
    try:
        found = read_certificates(text.encode("ascii"))
    except ValueError:
        raise NotConfig(f"{name} must be certificates in PEM", line) from None
    if len(found) != text.count("-----BEGIN "):
        raise NotConfig(f"{name} must have certificates only, no key or other thing", line)
    return "".join(f"{each.decode('ascii')}\n" for each in found)


def _join_sorted(texts: Iterable[str]) -> str:
    return ", ".join(sorted(texts))


_READERS: Mapping[str, Reader] = {
    "silence_seconds": _silence,
    "max_body_bytes": whole_number(_MOST_BODY),
    "ca_certificates": _certificates,
    "accounting": switch,
    "providers": _providers,
}
_OF_PROVIDER: Mapping[str, Reader] = {
    "base_url": base_url,
    "prefix": _prefix,
    "dialect": _dialect,
    "credential": _credential,
}
