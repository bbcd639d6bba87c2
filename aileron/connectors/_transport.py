"""Sends requests without cookies, redirects, proxies and decoding. Only reads of tools may use a connection again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IHostResolution,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IResolutionReceiver,
    IStreamClientEndpoint,
)
from twisted.web.client import URI, Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgentEndpointFactory, IBodyProducer, IResponse
from zope.interface import implementer

from aileron import __version__
from aileron.base.addresses import Origin, is_loopback, read_address, read_origin
from aileron.base.file_bodies import FileProducer
from aileron.base.outgoing import BodyTooLong, BytesProducer, read_body
from aileron.base.waiting import given_up_at_once
from aileron.credentials import TokenAnswer, TokenRequest
from aileron.model.errors import BindingFailed, NetworkError
from aileron.model.interfaces.services import IConnectingReactor

from ._answer import (
    AddressRefused,
    BeginBody,
    Flight,
    OutgoingRequest,
    ServiceAnswer,
    ServiceUnreachable,
    TakeBody,
    TooLarge,
    Transport,
)
from ._body import GatheredBody, OpenedAnswer
from ._connection import ConnectionOpener, Resolve, ServiceConnection, verifying
from ._conversation import NotUnderstood
from ._decode import show_safely
from ._kept import KeptConnections, is_stale
from ._places import own_base_url

_CHALLENGE = "www-authenticate"
_EXCHANGE_SECONDS = 20.0
_MOST_EXCHANGED_BYTES = 64 * 1024
_FETCH_SECONDS = 120.0
_OK, _REDIRECTS = 200, range(300, 400)


@frozen
class HttpTransport:
    """The HTTP implementation of L{aileron.connectors._answer.Transport}.

    :ivar opener: opens the connections.
    """

    opener: ConnectionOpener = field(repr=False)
    _kept: KeptConnections = field(init=False, repr=False, eq=False)

    @_kept.default
    def _make_kept(self) -> KeptConnections:
        return KeptConnections(self.opener.reactor)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Send the request on a new connection, which is always closed afterwards.

        :return: a Deferred that fires with the response, whatever its status. It fails with L{AddressRefused},
            L{ServiceUnreachable} or L{TooLarge}.
        """
        return self._exchange(message, flight, None, None)

    def stream(
        self, message: OutgoingRequest, flight: Flight, begin: BeginBody, consumer: IConsumer | None = None
    ) -> Deferred[ServiceAnswer]:
        """Send the request on a new connection, and deliver each piece of the body until no more is wanted.

        :return: a Deferred that fires with the response, without its body. It fails with L{AddressRefused},
            L{ServiceUnreachable} or L{TooLarge}, or with the L{NotUnderstood} that C{begin} or the function raised.
        """
        return self._exchange(message, flight, begin, consumer)

    def _exchange(
        self, message: OutgoingRequest, flight: Flight, begin: BeginBody | None, consumer: IConsumer | None
    ) -> Deferred[ServiceAnswer]:
        connection = ServiceConnection(flight, message.private_network, keeps_head=message.method == "HEAD")
        answered = Deferred.fromCoroutine(self._answer(message, connection, begin, consumer))
        return given_up_at_once(answered, connection.give_up)

    async def _answer(
        self,
        message: OutgoingRequest,
        connection: ServiceConnection,
        begin: BeginBody | None,
        consumer: IConsumer | None,
    ) -> ServiceAnswer:
        try:
            response, most = await self._response(message, connection), message.max_response_bytes
            if response.length is not UNKNOWN_LENGTH and response.length > most:
                raise TooLarge(response.code)  # noqa: TRY301 - handled like a body that is too large
            head = _make_head(response, connection)
            take = None if begin is None else begin(head)
            return evolve(head, body=await _read(response, most, connection, take, consumer))
        except (AddressRefused, TooLarge, ServiceUnreachable, NotUnderstood):
            raise
        except Exception:  # noqa: BLE001  (any error of the HTTP client: the connection broke)
            raise ServiceUnreachable from None
        finally:
            connection.drop()

    def open(self, message: OutgoingRequest, flight: Flight, scope: bytes) -> Deferred[OpenedAnswer]:
        """Send a read on a kept connection, or a new one if there is none, and return the opened answer.

        If the connection turns out to be closed before any byte of an answer, the read is sent once more on a new one.

        :param scope: a connection is used again only for requests with the same scope, to the same origin.
        :return: a Deferred that fires when the head of the response has arrived, whatever its status. It fails with
            L{AddressRefused} or L{ServiceUnreachable}. Cancelling closes the connection.
        """
        connection = ServiceConnection(flight, message.private_network, keeps_head=message.method == "HEAD")
        opened = Deferred.fromCoroutine(self._open(message, connection, scope))
        return given_up_at_once(opened, connection.give_up)

    async def _open(self, message: OutgoingRequest, connection: ServiceConnection, scope: bytes) -> OpenedAnswer:
        try:
            response = await self._ask(message, connection, scope)
        except (AddressRefused, ServiceUnreachable, CancelledError):
            connection.drop()
            raise
        except Exception:  # noqa: BLE001  (any error of the HTTP client: the connection broke)
            connection.drop()
            raise ServiceUnreachable from None
        head, length = _make_head(response, connection), response.length
        body = GatheredBody(connection.is_whole, connection.drop, self.opener.reactor)
        response.deliverBody(body)
        return OpenedAnswer(head, None if length is UNKNOWN_LENGTH else length, body)

    async def _ask(self, message: OutgoingRequest, connection: ServiceConnection, scope: bytes) -> IResponse:
        try:
            return await self._response(message, connection, scope)
        except Exception as error:  # any error of the HTTP client
            # guard of own tools: a read is sent again only if a kept connection was closed before it was answered
            #    -> connectors.test_kept.KeptTests.test_answer_broken, instead if connection.given_up
            if connection.given_up or not connection.is_reused or not is_stale(error):
                raise
        connection.drop()
        return await self._response(message, connection, scope, anew=True)

    def _response(
        self, message: OutgoingRequest, connection: ServiceConnection, scope: bytes | None = None, *, anew: bool = False
    ) -> Deferred[IResponse]:
        reactor, origin = self.opener.reactor, read_origin(message.url)
        endpoint = _CheckedEndpoint(self.opener, origin, connection, scope, anew)
        pool: Any = HTTPConnectionPool(reactor, persistent=False) if scope is None else self._kept
        agent = Agent.usingEndpointFactory(reactor, endpoint, pool)
        request: Deferred[IResponse] = agent.request(
            message.method.encode("ascii"), message.url.encode("ascii"), _headers(message, origin), _produce(message)
        )
        return request


@frozen
class HttpExchange:
    """A L{TokenExchange} over HTTP, with a timeout of 20 seconds. Redirects are not followed."""

    transport: Transport = field(repr=False)
    clock: IReactorTime = field(repr=False)

    async def __call__(self, asked: TokenRequest) -> TokenAnswer:
        """Send one request on a new connection, and return the response.

        :raises BindingFailed: if the URL or its address is not permitted.
        :raises NetworkError: if no complete response arrived in time.
        """
        try:
            own_base_url(read_origin(asked.url).url, private_network=asked.private_network)
        except ValueError as error:
            raise BindingFailed(f"The URL of the {asked.place} {error}.") from None
        message = OutgoingRequest(
            method="GET" if asked.body is None else "POST",
            url=asked.url,
            headers=asked.headers,
            body=asked.body,
            private_network=asked.private_network,
            max_response_bytes=_MOST_EXCHANGED_BYTES,
        )
        try:
            answer = await self.transport.send(message, Flight()).addTimeout(_EXCHANGE_SECONDS, self.clock)
        except AddressRefused:
            raise BindingFailed(f"The {asked.place} leads to an address that may not be connected to.") from None
        except Overdue:
            raise NetworkError(f"The {asked.place} did not answer within {_EXCHANGE_SECONDS:g} seconds.") from None
        except (ServiceUnreachable, TooLarge):
            raise NetworkError(f"The {asked.place} could not be reached, or its answer was not whole.") from None
        return TokenAnswer(answer.status, answer.body, answer.headers.get(_CHALLENGE, ""))


@frozen
class HttpFetch:
    """The fetcher of documents that a person names, without credentials. Redirects are not followed.

    :ivar most_bytes: the limit of a document.
    """

    transport: Transport = field(repr=False)
    clock: IReactorTime = field(repr=False)
    most_bytes: int

    async def __call__(self, url: str) -> bytes:
        """Fetch C{url}: https, or http on loopback.

        :raises NetworkError: if the URL is not permitted, the host does not answer in time, the document is too large,
            or the status is not 200. The message has the reason.
        """
        try:
            origin = read_origin(url)
            own_base_url(origin.url, private_network=True)
        except ValueError as error:
            raise NetworkError(f"The address {error}.") from None
        local = is_loopback(origin.host)
        message = OutgoingRequest("GET", url.partition("#")[0], (("Accept", "*/*"),), None, local, self.most_bytes)
        try:
            answer = await self.transport.send(message, Flight()).addTimeout(_FETCH_SECONDS, self.clock)
        except AddressRefused:
            raise NetworkError("The address is in a private network, so it was not fetched.") from None
        except TooLarge:
            raise NetworkError(f"The document is larger than {self.most_bytes // 1024 // 1024} MiB.") from None
        except (Overdue, ServiceUnreachable):
            raise NetworkError("The address could not be reached, or its answer was incomplete.") from None
        if answer.status in _REDIRECTS:
            target = show_safely(answer.headers.get("location", ""))
            raise NetworkError(f"The address redirects to another one, which was not followed: {target}")
        if answer.status != _OK:
            raise NetworkError(f"The address answered with status {answer.status}.")
        return answer.body


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
@frozen
class _CheckedEndpoint:
    """The endpoint of the HTTP client, which connects to the checked origin.

    :ivar kept_for: the scope in which a connection may be used again, or None if it is closed afterwards.
    :ivar anew: True if no kept connection may be used.
    """

    opener: ConnectionOpener
    origin: Origin
    connection: ServiceConnection
    kept_for: bytes | None = None
    anew: bool = False

    @property
    def scope(self) -> Hashable:
        """The scope of the request. A kept connection is used only by requests with an equal scope."""
        return self.kept_for, self.origin, self.connection.private_network

    def use(self, protocol: Any) -> None:
        """Note that the request uses a connection, which may be a kept one."""
        self.connection.reuse(protocol.transport)

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return this endpoint for every URL, because the URL was parsed and checked before."""
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        return Deferred.fromCoroutine(self.opener.open(self.origin, self.connection, protocolFactory))


async def _read(
    response: IResponse,
    most: int,
    connection: ServiceConnection,
    take: TakeBody | None,
    consumer: IConsumer | None,
) -> bytes:
    try:
        return await read_body(response, most, connection.is_whole, take, consumer)
    except BodyTooLong:
        raise TooLarge(response.code) from None


def _produce(message: OutgoingRequest) -> IBodyProducer | None:
    if message.file is not None:
        return FileProducer(message.file)
    return None if message.body is None else BytesProducer(message.body)


def _headers(message: OutgoingRequest, origin: Origin) -> Headers:
    headers = Headers(
        {"Host": [origin.authority], "User-Agent": [f"aileron/{__version__}"], "Accept-Encoding": ["identity"]}
    )
    for name, value in message.headers:
        headers.addRawHeader(name, value)
    return headers


def _first_values(headers: Headers) -> dict[str, str]:
    found = {name.decode("latin-1").lower(): values for name, values in headers.getAllRawHeaders()}
    first = {name: values[0].decode("latin-1") for name, values in found.items()}
    challenges = [value.decode("latin-1") for value in found.get(_CHALLENGE, ())]
    return {**first, **({_CHALLENGE: ", ".join(challenges)} if challenges else {})}


def _make_head(response: IResponse, connection: ServiceConnection) -> ServiceAnswer:
    fields = (*_head(response), *connection.length_headers())
    return ServiceAnswer(response.code, _first_values(response.headers), b"", fields)


def _head(response: IResponse) -> Iterator[str]:
    yield response.phrase.decode("latin-1")
    for name, values in response.headers.getAllRawHeaders():
        yield from (each.decode("latin-1") for value in values for each in (name, value))


@implementer(IResolutionReceiver)
class _Addresses:
    """Collects the IP addresses that the resolver finds for a host name. L{done} fires with all of them."""

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
    """Return a function that resolves names by the system's resolver. An address resolves to itself."""

    def resolve(host: str) -> Deferred[Sequence[str]]:
        if read_address(host) is not None:
            return succeed([host])
        receiver = _Addresses()
        reactor.nameResolver.resolveHostName(receiver, host, 0, [IPv4Address, IPv6Address])
        return receiver.done

    return resolve


def system_transport(reactor: IConnectingReactor, own_ports: Callable[[], Collection[int]]) -> HttpTransport:
    """Build the daemon's transport: no proxy, the system's certificate authorities, nothing from the environment.

    :param reactor: a real one.
    :param own_ports: returns the daemon's ports, to which no loopback connection is made.
    """
    return HttpTransport(ConnectionOpener(reactor, system_resolver(reactor), verifying(), own_ports))
