"""Which HTTP proxy stands before which upstream, as the environment says it.

C{HTTPS_PROXY}, C{HTTP_PROXY}, C{ALL_PROXY} and C{NO_PROXY} are read as curl reads them, lower case first, but for three
things.  An upstream on loopback is reached directly, unless the proxy is on loopback too: another machine's loopback is
not ours, and what is plain http stays here.  A proxy without a port is at port 80.  C{*.example.com} in C{NO_PROXY}
means the same as C{.example.com}.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from attrs import field, frozen

from .unreachable import Cause, Unreachable

_Address = IPv4Address | IPv6Address
_Exempt = Callable[[str, int], bool]

_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@frozen
class Proxy:
    """An HTTP proxy.

    :ivar host: a name, or an address without brackets.
    :ivar credentials: the line of the head that the proxy asks for, with its end; empty: it asks for none.
    """

    host: str
    port: int
    credentials: bytes = field(default=b"", repr=False)

    @property
    def authority(self) -> str:
        """Host and port."""
        return authority(self.host, self.port)


@frozen
class Unusable:
    """A proxy that is named and that nobody can connect to.

    :ivar message: why; it repeats nothing of the value, which may hold a password.
    """

    message: str


@frozen
class Proxies:
    """The proxies of an environment.

    :ivar by_scheme: of the upstream's URL.
    """

    by_scheme: Mapping[str, Proxy | Unusable] = field(factory=dict)
    _exempt: tuple[_Exempt, ...] = ()

    def before(self, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy that stands before an upstream; L{None}: it is reached directly.

        :raises Unreachable: it is one that cannot be used.
        """
        proxy = self.by_scheme.get(scheme)
        if proxy is None or any(exempt(_bare(host), port) for exempt in self._exempt):
            return None
        remote = isinstance(proxy, Unusable) or not _is_loopback(proxy.host)
        if remote and _is_loopback(host):
            return None
        if isinstance(proxy, Unusable):
            raise Unreachable.because(Cause.PROXY, proxy.message)
        return proxy


def read_proxies(environment: Mapping[str, str]) -> Proxies:
    """Read the variables; what is wrong in them is told only where it matters.

    :param environment: names in either case.
    """
    found = {scheme: _proxy(environment, f"{scheme}_proxy", "all_proxy") for scheme in ("https", "http")}
    _, no_proxy = _variable(environment, "no_proxy")
    entries = no_proxy.replace(",", " ").split()
    return Proxies({scheme: each for scheme, each in found.items() if each}, tuple(map(_exemption, entries)))


def authority(host: str, port: int) -> str:
    """C{host:port}, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _variable(environment: Mapping[str, str], *names: str) -> tuple[str, str]:
    """The first of these variables that is not empty, and its value."""
    spellings = (spelling for name in names for spelling in (name, name.upper()))
    return next(((name, value) for name in spellings if (value := environment.get(name, "").strip())), ("", ""))


def _proxy(environment: Mapping[str, str], *names: str) -> Proxy | Unusable | None:
    name, value = _variable(environment, *names)
    if not value:
        return None
    scheme = _SCHEME.match(value)
    if scheme and scheme[1].lower() != "http":
        return Unusable(f"{name.upper()} names a proxy of the kind {scheme[1].lower()}://; only http:// will do.")
    try:
        return _http_proxy(value if scheme else f"http://{value}")
    except ValueError:
        return Unusable(f"{name.upper()} is not the URL of a proxy, such as http://user:password@proxy.example:3128.")


def _http_proxy(url: str) -> Proxy:
    split = urlsplit(url)
    host = split.hostname or ""
    # An unquoted "/", "?" or "#" in a password would make another host of its rest.
    if not _VISIBLE.fullmatch(url) or split.path not in {"", "/"} or "?" in url or "#" in url or "\\" in url:
        raise ValueError("no plain URL")
    if not _HOST.fullmatch(host) and not isinstance(_address(host), IPv6Address):
        raise ValueError("no host")
    if split.port == 0:
        raise ValueError("no port")
    return Proxy(host, split.port or 80, _credentials(split))


def _credentials(split: SplitResult) -> bytes:
    if split.username is None:
        return b""
    pair = unquote_to_bytes(split.username) + b":" + unquote_to_bytes(split.password or "")
    return b"Proxy-Authorization: Basic " + b64encode(pair) + b"\r\n"


def _exemption(entry: str) -> _Exempt:
    """Read an entry of C{NO_PROXY}."""
    name, port = _name_and_port(entry.lower())
    fits = _fitting(name)
    return lambda host, there: (port is None or port == there) and fits(host)


def _name_and_port(entry: str) -> tuple[str, int | None]:
    """C{host:port} taken apart; an IPv6 address that has a port stands in brackets."""
    if _address(entry) is not None:
        return entry, None
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isascii() and digits.isdigit() and len(digits) <= 5:
        return name, int(digits)
    return entry, None


def _fitting(name: str) -> Callable[[str], bool]:
    if name == "*":
        return lambda _: True
    try:
        network = ip_network(name.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        suffix = name.removeprefix("*").strip(".")
        return lambda host: bool(suffix) and (host == suffix or host.endswith("." + suffix))
    return lambda host: (address := _address(host)) is not None and address in network


def _bare(host: str) -> str:
    return host.lower().rstrip(".")


def _is_loopback(host: str) -> bool:
    bare = _bare(host)
    address = _address(bare)
    return address.is_loopback if address else bare == "localhost" or bare.endswith(".localhost")


def _address(text: str) -> _Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
