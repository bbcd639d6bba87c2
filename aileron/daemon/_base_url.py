"""Where a provider is: a base URL, read so strictly that nobody can read it otherwise."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

_MOST = 500
_MOST_HOST = 253
_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)*/?")
_THIS_MACHINE = (IPv4Network("127.0.0.0/8"), IPv6Address("::1"))


def base_url(text: str) -> str:
    """Read a base URL.

    :return: the same in its plainest form: lower-case host, no port that the scheme has anyway, no slash at the end.
    :raises ValueError: what is wrong with it, as the end of a sentence that begins with its name; it is not repeated.
    """
    parts = _split(text)
    host, port = _host_and_port(parts)
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError("must begin with https://, unless it leads to this machine")
    if not _PATH.fullmatch(parts.path) or {".", ".."} & set(parts.path.split("/")):
        raise ValueError("must have a plain path: no empty, dot or encoded segments")
    shown = "" if port in {None, _PORTS[parts.scheme]} else f":{port}"
    return f"{parts.scheme}://{host}{shown}{parts.path.rstrip('/')}"


def _split(text: str) -> SplitResult:
    if len(text) > _MOST or not _VISIBLE.fullmatch(text) or "\\" in text:
        raise ValueError(f"must be visible ASCII without backslashes, {_MOST} characters at most")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("must be a URL") from None
    if parts.scheme not in _PORTS or not parts.netloc:
        raise ValueError("must begin with https:// (or http://, to this machine)")
    if "?" in text or "#" in text:
        raise ValueError("must have no query and no fragment")
    if "@" in parts.netloc:
        raise ValueError("must have no user name and no password")
    return parts


def _host_and_port(parts: SplitResult) -> tuple[str, int | None]:
    """The host as it is written in a URL, and the port if one is said."""
    host, colon, port = parts.netloc.lower(), "", ""
    if not host.endswith("]"):
        before, colon, port = host.rpartition(":")
        host = before if colon else host
    if colon and (not _PORT.fullmatch(port) or int(port) > 65535):
        raise ValueError("must have a port from 1 to 65535, or none")
    return _plain_host(host), int(port) if colon else None


def _plain_host(host: str) -> str:
    try:
        if host.startswith("[") and host.endswith("]") and "%" not in host:
            return f"[{IPv6Address(host[1:-1])}]"
        if _NUMBER.fullmatch(host):  # else 0x7f.1 would be a name to us, and an address to whoever connects
            return str(IPv4Address(host))
    except ValueError:
        raise ValueError("must have a proper address") from None
    if len(host) > _MOST_HOST or not _NAME.fullmatch(host):
        raise ValueError("must have a proper host")
    return host


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address in _THIS_MACHINE[0] if isinstance(address, IPv4Address) else address == _THIS_MACHINE[1]
