"""Chooses the HTTP proxy of each upstream from the environment.

C{HTTPS_PROXY}, C{HTTP_PROXY}, C{ALL_PROXY} and C{NO_PROXY} are read as curl reads them, lower case first, with four
exceptions. An upstream on loopback is reached directly, unless the proxy is on loopback too, because the loopback of
another machine is not ours, and plain http stays on this machine. A proxy without a port is at port 80. An entry
C{*.example.com} in C{NO_PROXY} equals C{.example.com}. A proxy whose host is not written plainly, such as C{127.1}, is
refused.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from urllib.parse import unquote_to_bytes

from attrs import field, frozen

from aileron.base.addresses import Origin, is_loopback, may_be_loopback, read_address, read_address_block, read_url

from ._unreachable import Cause, UpstreamUnreachable

_Exempt = Callable[[str, int], bool]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@frozen
class Proxy:
    """An HTTP proxy.

    :ivar origin: the address of the proxy.
    :ivar credentials: the header line with the proxy's password and its line end, or empty if none is required.
    """

    origin: Origin
    credentials: bytes = field(default=b"", repr=False)

    @property
    def authority(self) -> str:
        """Host and port of the proxy."""
        return self.origin.host_and_port


@frozen
class Unusable:
    """An invalid proxy setting.

    :ivar message: the reason. It contains no part of the value, which may hold a password.
    """

    message: str


@frozen
class Proxies:
    """The proxies of an environment.

    :ivar by_scheme: the proxy by the scheme of the upstream's URL.
    """

    by_scheme: Mapping[str, Proxy | Unusable] = field(factory=dict)
    _exempt: tuple[_Exempt, ...] = ()

    def before(self, upstream: Origin) -> Proxy | None:
        """Return the proxy of an upstream, or None if the upstream is reached directly.

        :raises UpstreamUnreachable: if the proxy cannot be used.
        """
        proxy = self.by_scheme.get(upstream.scheme)
        if proxy is None or any(exempt(upstream.host, upstream.port) for exempt in self._exempt):
            return None
        remote = isinstance(proxy, Unusable) or not is_loopback(proxy.origin.host)
        if remote and may_be_loopback(upstream.host):
            return None
        if isinstance(proxy, Unusable):
            raise UpstreamUnreachable.because(Cause.PROXY, proxy.message)
        return proxy


def read_proxies(environment: Mapping[str, str]) -> Proxies:
    """Parse the proxy variables of an environment. An invalid proxy raises an error only when it is used.

    :param environment: the variables. Their names may be in upper or lower case.
    """
    found = {scheme: _proxy(environment, f"{scheme}_proxy", "all_proxy") for scheme in ("https", "http")}
    _, no_proxy = _variable(environment, "no_proxy")
    entries = no_proxy.replace(",", " ").split()
    return Proxies({scheme: each for scheme, each in found.items() if each}, tuple(map(_exemption, entries)))


def _variable(environment: Mapping[str, str], *names: str) -> tuple[str, str]:
    """Return the name and value of the first variable that is not empty, or two empty texts."""
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
    read = read_url(url)
    # After an unquoted "/", "?" or "#" in a password, the rest would be read as another host.
    if read.path not in {"", "/"} or read.query is not None or read.fragment is not None:
        raise ValueError("no plain URL")
    return Proxy(read.origin, _credentials(read.user_info))


def _credentials(user_info: str | None) -> bytes:
    if user_info is None:
        return b""
    user, _, password = user_info.partition(":")
    pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    return b"Proxy-Authorization: Basic " + b64encode(pair) + b"\r\n"


def _exemption(entry: str) -> _Exempt:
    """Parse an entry of C{NO_PROXY} into a function that matches host and port."""
    name, port = _name_and_port(entry.lower())
    fits = _make_matcher(name)
    return lambda host, there: (port is None or port == there) and fits(host)


def _name_and_port(entry: str) -> tuple[str, int | None]:
    """Split C{host:port}, and return the host and the port, or None as the port if the entry has none.

    An IPv6 address with a port is in brackets.
    """
    if read_address(entry) is not None:
        return entry, None
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isascii() and digits.isdigit() and len(digits) <= 5:
        return name, int(digits)
    return entry, None


def _make_matcher(name: str) -> Callable[[str], bool]:
    if name == "*":
        return lambda _: True
    block = read_address_block(name.replace("[", "").replace("]", ""))
    if block is None:
        suffix = name.removeprefix("*").strip(".")
        return lambda host: bool(suffix) and (host == suffix or host.endswith("." + suffix))
    return lambda host: (address := read_address(host)) is not None and address in block
