"""The network of a proof: hosts are checked as usual, and each connection goes to one server in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.interfaces import IProtocol, IProtocolFactory, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from zope.interface import implementer

from aileron.addresses import Origin, is_loopback, read_address
from aileron.connectors import ConnectionOpener, HttpTransport

_LOOPBACK, _PUBLIC = "127.0.0.1", "93.184.215.14"  # the latter is judged, and never connected to
_NOBODY = 1  # a port on which nothing listens


def _no_tls(host: str) -> Any:
    raise ValueError(f"No connection to {host} leaves this machine.")


@implementer(IStreamClientEndpoint)
@define(eq=False)
class ProofNetwork:
    """Connects to the C{service}, whatever host is asked for.

    :ivar origins: where the connector may go, as it declares.
    :ivar strange: where else it went.
    :ivar refusing: whether nobody listens, as where a service is down.
    :ivar dialing: how many connections are being made.
    """

    reactor: Any
    service: Factory
    origins: Sequence[Origin] = ()
    refusing: bool = False
    strange: list[str] = field(factory=list)
    dialing: int = 0
    _port: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Listen, on this machine alone."""
        self._port = self.reactor.listenTCP(0, self.service, interface=_LOOPBACK)

    def begin(self, *, refusing: bool) -> None:
        """Forget what was before, for another run."""
        self.refusing = refusing
        self.strange.clear()

    async def close(self) -> None:
        """Listen no more."""
        await self._port.stopListening()

    @property
    def transport(self) -> HttpTransport:
        """The daemon's transport, on this network."""
        return HttpTransport(ConnectionOpener(self.reactor, _resolve, _no_tls, lambda: (), self._reach))

    def _reach(self, origin: Origin) -> IStreamClientEndpoint:
        if origin not in self.origins:
            self.strange.append(origin.url)
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect to the server of this process."""
        port = _NOBODY if self.refusing else self._port.getHost().port
        self.dialing += 1
        made: Deferred[IProtocol] = TCP4ClientEndpoint(self.reactor, _LOOPBACK, port).connect(protocolFactory)
        return made.addBoth(self._made)

    def _made(self, result: Any) -> Any:
        self.dialing -= 1
        return result


def _resolve(host: str) -> Deferred[Sequence[str]]:
    if read_address(host) is not None:
        return succeed([host])
    return succeed([_LOOPBACK if is_loopback(host) else _PUBLIC])
