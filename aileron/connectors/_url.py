"""URLs that a connector may send to: an origin that no input can touch, encoded segments, an encoded query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address
from urllib.parse import SplitResult, quote, urlencode, urljoin, urlsplit

from attrs import frozen

from ._address import is_loopback

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
_BASE_PATH = re.compile(r"(?:/[A-Za-z0-9_.~-]+)*/?")
_VISIBLE = re.compile(r"[\x21-\x7e]*")


@frozen
class Origin:
    """Where a URL leads to.

    :ivar host: lower case; an IPv6 address without brackets.
    """

    scheme: str
    host: str
    port: int

    @property
    def host_and_port(self) -> str:
        """As a connector file lists it."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        """The beginning of every URL there; the default port is left out."""
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{bracketed(self.host)}{port}"


@frozen
class BaseUrl:
    """An origin and the path that all paths begin with, without a slash at its end."""

    origin: Origin
    path: str

    @property
    def url(self) -> str:
        """The URL."""
        return self.origin.url + self.path


def bracketed(host: str) -> str:
    """C{host} as a URL writes it."""
    return f"[{host}]" if ":" in host else host


def origin_of(url: str) -> Origin:
    """The origin of an absolute URL.

    :raises ValueError: it has none that could be asked, or carries a user name.
    """
    split = _split(url)
    host = (split.hostname or "").lower()
    if split.scheme not in _PORTS:
        raise ValueError("must begin with https:// or http://")
    if "@" in split.netloc:
        raise ValueError("must not carry a user name or a password")
    if not _is_host(host):
        raise ValueError("has no proper host")
    return Origin(split.scheme, host, split.port or _PORTS[split.scheme])


def base_url(text: str, *, private_network: bool) -> BaseUrl:
    """Read a base URL.

    :param private_network: whether plain http (to loopback only) may be spoken.
    :raises ValueError: what is wrong with it.
    """
    origin, split = origin_of(text), _split(text)
    if split.query or split.fragment or "?" in text or "#" in text:
        raise ValueError("must have no query and no fragment")
    if not _BASE_PATH.fullmatch(split.path) or {".", ".."} & set(split.path.split("/")):
        raise ValueError("must have a plain path")
    if origin.scheme == "http" and not (private_network and _may_be_loopback(origin.host)):
        raise ValueError("must begin with https:// (plain http is for loopback, where private_network is declared)")
    return BaseUrl(origin, split.path.rstrip("/"))


def host_and_port(text: str) -> str:
    """Read an entry of C{hosts}; the same in lower case.

    :raises ValueError: it is no C{host:port}.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not _is_host(bare.lower()) or (":" in bare and bare == host):
        raise ValueError("must be host:port")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("must be host:port, the port between 1 and 65535")
    return f"{host.lower()}:{int(port)}"


def segment(text: str) -> str:
    """C{text} as exactly one segment of a path: nothing in it can end the segment or climb.

    :raises ValueError: it is empty, C{.}, C{..}, or holds a control character.
    """
    if text in {"", ".", ".."}:
        raise ValueError("must not be empty, '.' or '..'")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("must not hold a control character")
    return quote(text, safe="", errors="strict")


def query(pairs: Iterable[tuple[str, str]]) -> str:
    """C{pairs} as a query (without the question mark) or as a form body."""
    return urlencode(list(pairs), quote_via=quote, safe="", errors="strict")


def redirected(url: str, location: str) -> str | None:
    """Where C{location} leads from C{url}, if that is of the same origin and proper; else L{None}."""
    if not _VISIBLE.fullmatch(location):
        return None
    target = urljoin(url, location).partition("#")[0]
    try:
        return target if origin_of(target) == origin_of(url) else None
    except ValueError:
        return None


def _split(url: str) -> SplitResult:
    if not _VISIBLE.fullmatch(url) or "\\" in url:
        raise ValueError("must be visible ASCII")
    return urlsplit(url)


def _is_host(host: str) -> bool:
    return bool(_HOST.fullmatch(host)) or (":" in host and "%" not in host and _is_ipv6(host))


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _may_be_loopback(host: str) -> bool:
    return host == "localhost" or is_loopback(host)
