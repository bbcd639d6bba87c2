"""One connection to an address that was checked, open only when its TLS handshake is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import Any

from attrs import define, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import (
    IHandshakeListener,
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IReactorPluggableNameResolver,
    IReactorTCP,
    IReactorTime,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.addresses import (
    SYSTEM_BUNDLES,
    Network,
    Origin,
    is_loopback,
    may_be_loopback,
    network_of,
    system_authorities,
)

from ._answer import AddressRefused, Flight, ServiceUnreachable


class IConnectingReactor(IReactorTCP, IReactorTime, IReactorPluggableNameResolver):
    """The parts of a reactor that are asked for here: a type only, every real reactor is one."""


Resolve = Callable[[str], Deferred[Sequence[str]]]
"""From a host name to its addresses; a failure or none at all: it is not known."""

_MOST_ADDRESSES = 4
_CONNECT_SECONDS = 10
_MOST_HEAD_BYTES = 256 * 1024


@define(eq=False)
class ServiceConnection:
    """The state of one connection while a request is on it.

    :ivar private_network: whether loopback and private addresses may be connected to.
    :ivar head_arrived: set when the answer's head was read: before, little may arrive.
    :ivar closed_cleanly: whether the service closed it in order.
    :ivar given_up: set when nobody waits any more: no further address is tried.
    """

    flight: Flight
    private_network: bool
    head_arrived: bool = False
    closed_cleanly: bool = False
    given_up: bool = False
    _transport: ITCPTransport | None = None

    def give_up(self) -> None:
        """Nobody waits any more."""
        self.given_up = True

    def carried_by(self, transport: ITCPTransport) -> None:
        """Note that the connection is there."""
        self._transport = transport

    def drop(self) -> None:
        """Abort the connection, if there is one.  Twice is safe."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abortConnection()


@implementer(IHandshakeListener)
class HandshakeGate(Protocol):
    """Stands before the protocol that will speak, and lets it speak only after the handshake."""

    def __init__(self, speaker: IProtocol, connection: ServiceConnection, *, plain: bool) -> None:
        self._speaker = speaker
        self._connection = connection
        self._plain = plain
        self._open = False
        self._received = 0
        self.opened: Deferred[IProtocol] = Deferred(lambda _: connection.drop())

    def connectionMade(self) -> None:
        """Without TLS it is open at once."""
        self._connection.carried_by(self.transport)  # type: ignore[arg-type]
        if self._plain:
            self.handshakeCompleted()

    def handshakeCompleted(self) -> None:
        """Hand over, since the peer is who its certificate says. The request is written in this very call."""
        if self._is_refused():
            return
        self._open = True
        self._speaker.makeConnection(self.transport)  # type: ignore[arg-type]
        self._connection.flight.sent = True
        self.opened.callback(self._speaker)

    def _is_refused(self) -> bool:
        """Tell whether the connection is being closed already.

        Up to Twisted 25.5 a certificate of another name closes it, and the handshake is told of all the same.
        """
        return bool(getattr(self.transport, "disconnecting", False))

    def dataReceived(self, data: bytes) -> None:
        """Pass it on, but no endless head."""
        self._received += len(data)
        self._speaker.dataReceived(data)
        if self._received > _MOST_HEAD_BYTES and not self._connection.head_arrived:
            self._connection.drop()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass the loss on to the HTTP protocol, or fail the attempt to connect."""
        self._connection.closed_cleanly = reason.check(ConnectionDone) is not None
        if self._open:
            self._speaker.connectionLost(reason)
        elif not self.opened.called:
            self.opened.errback(reason)


@frozen
class ConnectionOpener:
    """Opens connections.

    :ivar own_ports: the ports that the daemon itself listens on now.
    :ivar tls: from a host name to what verifies it.
    """

    reactor: IConnectingReactor
    resolve: Resolve
    tls: Callable[[str], IOpenSSLClientConnectionCreator]
    own_ports: Callable[[], Collection[int]]

    async def open(self, origin: Origin, connection: ServiceConnection, speakers: IProtocolFactory) -> IProtocol:
        """Connect to C{origin}: to the very addresses that were checked, one after the other.

        :raises AddressRefused: it has no address that may be connected to.
        :raises ServiceUnreachable: none of them answers, or none is who it should be.
        """
        for address in await self._list_permitted(origin, connection.private_network):
            protocol = await self._try(address, origin, connection, speakers)
            if protocol is not None:
                return protocol
        raise ServiceUnreachable

    async def _list_permitted(self, origin: Origin, private_network: bool) -> Sequence[str]:
        addresses = await self.resolve(origin.host)
        if not addresses:
            raise ServiceUnreachable
        good = [each for each in addresses if self._may(each, origin, private_network)]
        if not good:
            raise AddressRefused
        return good[:_MOST_ADDRESSES]

    def _may(self, address: str, origin: Origin, private_network: bool) -> bool:
        if may_be_loopback(address) and origin.port in self.own_ports():
            return False
        if origin.scheme == "http":
            return private_network and is_loopback(address)
        allowed = {Network.PUBLIC, Network.PRIVATE, Network.LOOPBACK} if private_network else {Network.PUBLIC}
        return network_of(address) in allowed

    async def _try(
        self, address: str, origin: Origin, connection: ServiceConnection, speakers: IProtocolFactory
    ) -> IProtocol | None:
        factory = _HandshakeGates(origin, connection, speakers)
        try:
            await self._endpoint(address, origin.port).connect(self._secure(origin, factory))
            return await factory.opened()
        except Exception:  # whatever a stack or a handshake raises: this address does not do
            connection.drop()
            if connection.given_up:
                raise
            return None

    def _endpoint(self, address: str, port: int) -> IStreamClientEndpoint:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        endpoint: IStreamClientEndpoint = kind(self.reactor, address, port, timeout=_CONNECT_SECONDS)
        return endpoint

    def _secure(self, origin: Origin, factory: Factory) -> Any:
        if origin.scheme == "http":
            return factory
        return TLSMemoryBIOFactory(self.tls(origin.host), True, factory, clock=self.reactor)


class _HandshakeGates(Factory):
    """Builds the one L{HandshakeGate} of a connection."""

    noisy = False

    def __init__(self, origin: Origin, connection: ServiceConnection, speakers: IProtocolFactory) -> None:
        self._origin = origin
        self._connection = connection
        self._speakers = speakers
        self._opening: HandshakeGate | None = None

    def buildProtocol(self, addr: Any) -> HandshakeGate | None:
        """Build the protocol that waits."""
        speaker = self._speakers.buildProtocol(addr)
        if speaker is None:
            return None
        self._opening = HandshakeGate(speaker, self._connection, plain=self._origin.scheme == "http")
        return self._opening

    async def opened(self) -> IProtocol:
        """Build the protocol that speaks, once it may."""
        if self._opening is None:
            raise ServiceUnreachable
        return await self._opening.opened


def verifying(bundles: Iterable[str] = SYSTEM_BUNDLES) -> Callable[[str], IOpenSSLClientConnectionCreator]:
    """From a host name to what verifies it by the system's authorities, which are read once, when first needed.

    Where there are none, no certificate is good.
    """

    @cache
    def roots() -> Any:
        return trustRootFromCertificates([Certificate.loadPEM(each) for each in system_authorities(bundles)])

    def verify(host: str) -> IOpenSSLClientConnectionCreator:
        made: IOpenSSLClientConnectionCreator = optionsForClientTLS(host, trustRoot=roots())
        return made

    return verify
