"""Sends one request on a connection of its own: no pool, no cookies, no redirects, no proxies, no decoding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from attrs import field, frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IHostResolution,
    IProtocol,
    IProtocolFactory,
    IResolutionReceiver,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, HTTPConnectionPool, ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgentEndpointFactory, IBodyProducer, IResponse
from zope.interface import implementer

from aileron import __version__
from aileron.addresses import Origin, read_address, read_origin
from aileron.waiting import given_up_at_once

from ._answer import AddressRefused, Flight, OutgoingRequest, ServiceAnswer, ServiceUnreachable, TooLarge
from ._connection import ConnectionOpener, IConnectingReactor, Resolve, ServiceConnection, verifying


@frozen
class HttpTransport:
    """Keeps the promises of L{aileron.connectors._answer.Transport}.

    :ivar opener: opens the connections.
    """

    opener: ConnectionOpener = field(repr=False)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Send it on a fresh connection, which is dropped whatever happens."""
        connection = ServiceConnection(flight, message.private_network)
        return given_up_at_once(Deferred.fromCoroutine(self._exchange(message, connection)), connection.give_up)

    async def _exchange(self, message: OutgoingRequest, connection: ServiceConnection) -> ServiceAnswer:
        try:
            response = await self._response(message, connection)
            connection.head_arrived = True
            body = await _collect(response, message.max_response_bytes, connection)
            return ServiceAnswer(response.code, _first_values(response.headers), body, tuple(_head(response)))
        except (AddressRefused, TooLarge, ServiceUnreachable):
            raise
        except Exception:  # noqa: BLE001  (whatever the agent makes of it: the connection broke)
            raise ServiceUnreachable from None
        finally:
            connection.drop()

    def _response(self, message: OutgoingRequest, connection: ServiceConnection) -> Deferred[IResponse]:
        reactor, origin = self.opener.reactor, read_origin(message.url)
        endpoint = _CheckedEndpoint(self.opener, origin, connection)
        agent = Agent.usingEndpointFactory(reactor, endpoint, HTTPConnectionPool(reactor, persistent=False))
        body = None if message.body is None else _Bytes(message.body)
        request: Deferred[IResponse] = agent.request(
            message.method.encode("ascii"), message.url.encode("ascii"), _headers(message, origin), body
        )
        return request


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
@frozen
class _CheckedEndpoint:
    """The endpoint to which the agent connects: our origin, as we connect."""

    opener: ConnectionOpener
    origin: Origin
    connection: ServiceConnection

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return always the same: the URL was read by us."""
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        return Deferred.fromCoroutine(self.opener.open(self.origin, self.connection, protocolFactory))


@implementer(IBodyProducer)
@frozen
class _Bytes:
    """A body that is there."""

    body: bytes

    @property
    def length(self) -> int:
        """Its size."""
        return len(self.body)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self.body)
        return succeed(None)

    def pauseProducing(self) -> None:
        """Do nothing: it is written already."""

    def resumeProducing(self) -> None:
        """Do nothing: it is written already."""

    def stopProducing(self) -> None:
        """Do nothing: it is written already."""


class _Collector(Protocol):
    """Gathers a body up to a size."""

    def __init__(self, status: int, most: int, connection: ServiceConnection) -> None:
        self._status = status
        self._most = most
        self._connection = connection
        self._body = bytearray()
        self.done: Deferred[bytes] = Deferred(lambda _: connection.drop())

    def dataReceived(self, data: bytes) -> None:
        """More of it; past the cap the connection is dropped."""
        self._body += data
        if len(self._body) > self._most and not self.done.called:
            self.done.errback(TooLarge(self._status))
            self._connection.drop()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note whether it is whole."""
        if self.done.called:
            return
        whole = reason.check(ResponseDone) or (reason.check(PotentialDataLoss) and self._connection.closed_cleanly)
        if whole:
            self.done.callback(bytes(self._body))
        else:
            self.done.errback(ServiceUnreachable())


def _collect(response: IResponse, most: int, connection: ServiceConnection) -> Deferred[bytes]:
    if response.length is not UNKNOWN_LENGTH and response.length > most:
        raise TooLarge(response.code)
    collector = _Collector(response.code, most, connection)
    response.deliverBody(collector)
    return collector.done


def _headers(message: OutgoingRequest, origin: Origin) -> Headers:
    headers = Headers(
        {"Host": [origin.authority], "User-Agent": [f"aileron/{__version__}"], "Accept-Encoding": ["identity"]}
    )
    for name, value in message.headers:
        headers.addRawHeader(name, value)
    return headers


def _first_values(headers: Headers) -> dict[str, str]:
    return {name.decode("latin-1").lower(): values[0].decode("latin-1") for name, values in headers.getAllRawHeaders()}


def _head(response: IResponse) -> Iterator[str]:
    yield response.phrase.decode("latin-1")
    for name, values in response.headers.getAllRawHeaders():
        yield from (each.decode("latin-1") for each in (name, *values))


@implementer(IResolutionReceiver)
class _Addresses:
    """Gathers what a name resolves to."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._resolution: IHostResolution | None = None
        self.done: Deferred[Sequence[str]] = Deferred(self._cancel)

    def _cancel(self, _: Deferred[Sequence[str]]) -> None:
        if self._resolution is not None:
            self._resolution.cancel()

    def resolutionBegan(self, resolutionInProgress: IHostResolution) -> None:
        self._resolution = resolutionInProgress

    def addressResolved(self, address: IAddress) -> None:
        if isinstance(address, IPv4Address | IPv6Address):
            self._found.append(address.host)

    def resolutionComplete(self) -> None:
        if not self.done.called:
            self.done.callback(self._found)


def system_resolver(reactor: IConnectingReactor) -> Resolve:
    """Resolve by the system's resolver; an address resolves to itself."""

    def resolve(host: str) -> Deferred[Sequence[str]]:
        if read_address(host) is not None:
            return succeed([host])
        receiver = _Addresses()
        reactor.nameResolver.resolveHostName(receiver, host, 0, [IPv4Address, IPv6Address])
        return receiver.done

    return resolve


def system_transport(reactor: IConnectingReactor, own_ports: Callable[[], Collection[int]]) -> HttpTransport:
    """Make the transport of the daemon: no proxy, the system's certificate authorities, nothing from the environment.

    :param reactor: a real one.
    :param own_ports: the ports that the daemon listens on now; never connected to on loopback.
    """
    return HttpTransport(ConnectionOpener(reactor, system_resolver(reactor), verifying(), own_ports))
