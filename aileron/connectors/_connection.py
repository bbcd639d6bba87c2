"""One connection to a checked address, which counts as open after its TLS handshake."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import Any

from attrs import define, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates
from twisted.python.failure import Failure
from twisted.web.http import PotentialDataLoss

from aileron.base.addresses import SYSTEM_BUNDLES, Origin, is_loopback, may_be_connected, system_authorities
from aileron.base.outgoing import GuardedConnection, GuardedEndpoint, NotConnected, is_response_done
from aileron.model.interfaces.services import IConnectingReactor

from ._answer import AddressRefused, Flight, ServiceUnreachable
from ._conversation import AskForTls, TlsEndpoint

Resolve = Callable[[str], Deferred[Sequence[str]]]
"""Resolves a host name to its addresses. It fails, or returns none, if the name is unknown."""

_MOST_ADDRESSES = 4
_CONNECT_SECONDS = 10
_MOST_HEAD_BYTES = 256 * 1024
_LENGTH = re.compile(rb"^content-length:[ \t]*+([0-9]{1,18})[ \t]*+\r?$", re.IGNORECASE | re.MULTILINE)


@define(eq=False)
class ServiceConnection:
    """The state of one connection while it carries a request.

    :ivar private_network: whether loopback and private addresses are permitted.
    :ivar ask_for_tls: runs the protocol's exchange before TLS (STARTTLS), or None if the connection starts with TLS.
    :ivar given_up: whether the request was cancelled. Then no further address is tried.
    :ivar reason: the error of the last address that was tried.
    :ivar keeps_head: whether to store the response's head as received, since the HTTP client removes Content-Length.
    :ivar is_reused: whether an earlier request used the connection.
    """

    flight: Flight
    private_network: bool
    ask_for_tls: AskForTls | None = None
    given_up: bool = False
    reason: BaseException | None = None
    keeps_head: bool = False
    is_reused: bool = False
    _guard: GuardedConnection | None = None

    def give_up(self) -> None:
        """Stop trying to connect to further addresses of the service."""
        self.given_up = True

    def carried_by(self, guard: GuardedConnection) -> None:
        """Store the open connection, and mark the request as sent.

        The request is written in the same turn of the reactor.
        """
        self._guard, guard.user = guard, self
        guard.head = bytearray() if self.keeps_head else None
        self.flight.sent = True

    def reuse(self, guard: GuardedConnection) -> None:
        """Store a connection, and mark the request as sent. If it was not opened for this request, note that."""
        if guard is not self._guard:
            self.is_reused = True
            self.carried_by(guard)

    def length_headers(self) -> tuple[str, ...]:
        """Return C{"Content-Length"} and its value in the stored head, or an empty tuple if no head has this header."""
        found = _LENGTH.findall(b"" if self._guard is None else self._guard.head or b"")
        return ("Content-Length", found[-1].decode("ascii")) if found else ()

    def is_whole(self, reason: Failure) -> bool:
        """Return whether a response body is complete, given the reason of its end.

        A body of unknown length is complete if its connection was closed properly.
        """
        lost = reason.check(PotentialDataLoss) is not None
        return is_response_done(reason) or (lost and self._guard is not None and self._guard.closed_cleanly)

    def drop(self) -> None:
        """Close the connection at once, unless there is none or it is kept for other requests. Idempotent."""
        guard, self._guard = self._guard, None
        # guard of own tools: a request that has ended closes no connection of another one
        #    -> connectors.test_kept.KeptTests.test_given_up_late, instead if guard is not None
        if guard is not None and guard.user is self:
            guard.transport.abortConnection()


@frozen
class ConnectionOpener:
    """The opener of connections.

    :ivar own_ports: returns the ports that the daemon itself listens on.
    :ivar tls: returns the verifier of a host's certificate.
    :ivar reach: returns the endpoint to which C{aileron connector prove} connects in place of an origin, or None to
        connect by TCP and TLS. The origin's address is checked in both cases.
    """

    reactor: IConnectingReactor
    resolve: Resolve
    tls: Callable[[str], IOpenSSLClientConnectionCreator]
    own_ports: Callable[[], Collection[int]]
    reach: Callable[[Origin], IStreamClientEndpoint] | None = None

    async def open(self, origin: Origin, connection: ServiceConnection, speakers: IProtocolFactory) -> IProtocol:
        """Connect to C{origin}: to each permitted address in turn.

        :raises AddressRefused: if the origin has no permitted address.
        :raises ServiceUnreachable: if no address answers, or none has a valid certificate.
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
        if not may_be_connected(address, origin.port, self.own_ports(), private_network=private_network):
            return False
        return origin.scheme != "http" or is_loopback(address)

    async def _try(
        self, address: str, origin: Origin, connection: ServiceConnection, speakers: IProtocolFactory
    ) -> IProtocol | None:
        try:
            endpoint = GuardedEndpoint(self._endpoint(address, origin, connection), _MOST_HEAD_BYTES)
            speaker: Any = await endpoint.connect(speakers)
        except Exception as error:  # any error of the network or the handshake: try the next address
            connection.reason = error.reason if isinstance(error, NotConnected) else error
            if connection.given_up:
                raise
            return None
        connection.carried_by(speaker.transport)
        opened: IProtocol = speaker
        return opened

    def _endpoint(self, address: str, origin: Origin, connection: ServiceConnection) -> IStreamClientEndpoint:
        if self.reach is not None:
            return self.reach(origin)
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        endpoint = kind(self.reactor, address, origin.port, timeout=_CONNECT_SECONDS)
        if origin.scheme in ("http", "ssh"):
            return endpoint
        return TlsEndpoint(endpoint, self.tls(origin.host), self.reactor, connection.ask_for_tls)


def verifying(bundles: Iterable[str] = SYSTEM_BUNDLES) -> Callable[[str], IOpenSSLClientConnectionCreator]:
    """Return a function that returns the TLS verifier of a host name. It trusts the system's certificate authorities.

    The authorities are read when the function is first called. If there are none, no certificate is valid.

    :param bundles: the files that may contain the authorities.
    """

    @cache
    def roots() -> Any:
        return trustRootFromCertificates([Certificate.loadPEM(each) for each in system_authorities(bundles)])

    def verify(host: str) -> IOpenSSLClientConnectionCreator:
        made: IOpenSSLClientConnectionCreator = optionsForClientTLS(host, trustRoot=roots())
        return made

    return verify
