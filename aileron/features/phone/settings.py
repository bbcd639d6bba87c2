"""The key C{phone} of C{config.yaml}: the address and the listener of the phone's pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aileron.base.addresses import read_url
from aileron.base.yaml_keys import Key, Keys, NotConfig, Section, line_of, match_text, read_keys, scalar

from .values import PhoneSettings, PhoneTls

if TYPE_CHECKING:
    from yaml import Node

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)+(?=[a-z0-9-]*[a-z]){_LABEL}")
_TLS = re.compile("|".join(each.value for each in PhoneTls))
_ENDPOINT = re.compile(r"tcp6?:[0-9]{1,5}(:[^\s]{1,200})?")
_DEFAULT = PhoneSettings("https://example.org")


def _public_url(node: Node, name: str, line: int) -> str:
    """Return the origin of an https URL that consists of a host name and perhaps a port.

    :raises NotConfig: if it is anything else: another scheme, an IP address, C{localhost}, a path, a query or user
        info. Passkeys need a name, and no phone reaches C{localhost}.
    """
    problem = f"{name} must be https:// and a host name, with or without a port, such as https://aileron.example.org"
    try:
        url = read_url(scalar(node, "str") or "")
    except ValueError:
        raise NotConfig(problem, line) from None
    host = url.origin.host
    is_origin = url.origin.scheme == "https" and url.path in ("", "/") and url.user_info is None
    if not is_origin or url.query is not None or not _NAME.fullmatch(host) or host.endswith(".localhost"):
        raise NotConfig(problem, line)
    return url.origin.url


def _listen(node: Node, name: str, line: int) -> str:
    return match_text(node, _ENDPOINT, line, f"{name} must be an endpoint of TCP, such as tcp:8443")[0]


def _tls(node: Node, name: str, line: int) -> PhoneTls:
    return PhoneTls(match_text(node, _TLS, line, f"{name} must be own, proxy or none")[0])


def _phone(keys: Keys, node: Node, name: str, _line: int) -> PhoneSettings:
    read: dict[str, Any] = read_keys(node, name, keys)
    if "public_url" not in read:
        raise NotConfig(f"{name} must have a public_url", line_of(node))
    return PhoneSettings(**read)


_KEYS: Keys = {
    "public_url": Key(
        _public_url, "address of your inbox for your phone, such as `https://aileron.example.org`", "none"
    ),
    "listen": Key(_listen, "where this address is served: a Twisted endpoint of TCP", f"`{_DEFAULT.listen}`"),
    "tls": Key(
        _tls, "who ends TLS: `own`, a `proxy` that checks the daemon's certificate, or `none` (plain HTTP)", "`own`"
    ),
}
PHONE = Section(_phone, _KEYS)
