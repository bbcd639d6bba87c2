"""Which addresses of a daemon would have our token travel in the clear."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

_OURS = "localhost"  # names below it are whatever a resolver says


def host_in_the_clear(url: str) -> str:
    """The host, in lower case, that C{url} asks by plain HTTP over a network; empty: it asks none so, or is no URL."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return host if parts.scheme == "http" and not _is_loopback(host) else ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == _OURS
