"""The endpoint that connects to an upstream: with or without a proxy, with or without TLS."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar, cast

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.error import ConnectError, ConnectingCancelledError, DNSLookupError
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.addresses import Origin, read_address, read_origin
from aileron.base.waiting import given_up_at_once
from aileron.model.interfaces.services import IConnectingReactor

from ._certificates import Identity, verifying
from ._proxies import Proxies, Proxy
from ._tls import TlsLayer
from ._tunnel import TunnelLayer
from ._unreachable import connecting_failed, silent
from .values import Provider

_T = TypeVar("_T")

CONNECT_SECONDS = 10.0


@frozen
class Forwarding:
    """The changes to a request that is sent to an HTTP proxy.

    :ivar target_prefix: the prefix of the path: empty, or scheme and authority if a proxy requires them.
    :ivar lines: the header lines to add, each with its line end.
    """

    target_prefix: bytes = b""
    lines: bytes = field(default=b"", repr=False)


def dialler(
    reactor: IConnectingReactor, provider: Provider, proxies: Proxies, pem: str, timeout: float = CONNECT_SECONDS
) -> IStreamClientEndpoint:
    """Create the endpoint of a provider.

    The Deferred of its C{connect} fires when requests may be sent, or fails with L{UpstreamUnreachable}. Cancelling it
    closes everything at once. With plain http the protocol's transport is the reactor's own.

    :param pem: certificates of authorities trusted in addition to the system's.
    :param timeout: the limit in seconds of each step: DNS lookup and connection, the proxy's response, the TLS
        handshake.
    """
    upstream = read_origin(provider.base_url)
    identity = cache(lambda: Identity(verifying(pem), upstream.host, upstream.host_and_port))
    return _Dialler(reactor, upstream, proxies, identity, timeout)


def forwarding(provider: Provider, proxies: Proxies) -> Forwarding:
    """Return the changes to requests that a proxy requires. Only plain http through a proxy requires changes.

    :raises UpstreamUnreachable: if the provider's proxy cannot be used.
    """
    upstream = read_origin(provider.base_url)
    proxy = proxies.before(upstream) if upstream.scheme == "http" else None
    if proxy is None:
        return Forwarding()
    return Forwarding(f"http://{upstream.host_and_port}".encode("ascii"), proxy.credentials)


class _Layer(Protocol):
    """A protocol between a transport and the protocol above it, such as TLS."""

    opened: Deferred[IProtocol]


@implementer(IStreamClientEndpoint)
@define(eq=False)
class _Dialler:
    """The endpoint of one upstream."""

    _reactor: IConnectingReactor
    _upstream: Origin
    _proxies: Proxies
    _identity: Callable[[], Identity]
    _seconds: float

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        return given_up_at_once(Deferred.fromCoroutine(self._connect(protocolFactory)))

    async def _connect(self, above: IProtocolFactory) -> IProtocol:
        upstream, proxy = self._upstream, self._proxies.before(self._upstream)
        if upstream.scheme == "http":
            return await self._tcp(proxy, above)
        identity = self._identity()
        tls = _Wrapping(above, lambda protocol: TlsLayer(protocol, identity, self._reactor))
        layer = await (self._tcp(None, tls) if proxy is None else self._tunnel(proxy, tls))
        return await self._open(layer, upstream.host_and_port)

    async def _tunnel(self, proxy: Proxy, above: IProtocolFactory) -> IProtocol:
        target = self._upstream.host_and_port
        tunnel = _Wrapping(above, lambda protocol: TunnelLayer(protocol, proxy, target))
        return await self._open(await self._tcp(proxy, tunnel), _called(proxy))

    async def _open(self, layer: IProtocol, who: str) -> IProtocol:
        return await self._in_time(cast(_Layer, layer).opened, who)

    async def _tcp(self, proxy: Proxy | None, above: IProtocolFactory) -> IProtocol:
        to = self._upstream if proxy is None else proxy.origin
        who = to.host_and_port if proxy is None else _called(proxy)
        endpoint = _endpoint(self._reactor, to.host, to.port, self._seconds)
        try:
            return await self._in_time(endpoint.connect(above), who)
        except ConnectingCancelledError:
            raise CancelledError from None
        except (ConnectError, DNSLookupError, ValueError) as error:
            raise connecting_failed(error, who) from None

    def _in_time(self, waited_for: Deferred[_T], who: str) -> Deferred[_T]:
        def too_late(_: object, seconds: float) -> Failure:
            return Failure(silent(who, seconds))

        return waited_for.addTimeout(self._seconds, self._reactor, too_late)


def _endpoint(reactor: IConnectingReactor, host: str, port: int, seconds: float) -> IStreamClientEndpoint:
    """Create the endpoint of a host. For a literal IP address, the endpoint needs no DNS lookup."""
    address = read_address(host)
    if address is None:
        return HostnameEndpoint(reactor, host, port, timeout=seconds)
    return (TCP4ClientEndpoint if address.version == 4 else TCP6ClientEndpoint)(reactor, host, port, timeout=seconds)


class _Wrapping(Factory):
    """A factory that puts a layer below each protocol of another factory."""

    noisy = False

    def __init__(self, above: IProtocolFactory, layer: Callable[[IProtocol], Any]) -> None:
        self._above = above
        self._layer = layer

    def buildProtocol(self, addr: Any) -> Any:
        """Build the layer, or return None if the other factory builds no protocol."""
        protocol = self._above.buildProtocol(addr)
        return None if protocol is None else self._layer(protocol)


def _called(proxy: Proxy) -> str:
    return f"The proxy {proxy.authority}"
