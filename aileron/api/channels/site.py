"""A site: resources behind L{Channel}s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.interfaces import IAddress, IDelayedCall, IListeningPort, IReactorTime
from twisted.internet.tcp import Port
from twisted.web.http import Request
from twisted.web.resource import IResource
from twisted.web.server import Site

from aileron.base.http1 import RelayHandler

from .channel import Channel
from .checks import SiteRules
from .limiter import MOST_CONNECTIONS, ConnectionLimiter, RequestTurns
from .relaying import RelayingChannel
from .request import MemoryRequest

IDLE_SECONDS = 60.0
REQUEST_SECONDS = 30.0


class GuardedSite(Site):
    """A site whose connections keep L{SiteRules}.

    :ivar taker: is offered each request before its body; a site without one gives none away.
    :ivar rules: may be set anew once the port is known; rules without hosts refuse everything.
    :ivar limiter: the connections that it holds.
    :ivar turns: when the requests of those that send many are begun.
    :ivar request_seconds: how long one request may take to come, head and body.
    """

    taker: RelayHandler
    _paced: IDelayedCall | None = None
    protocol = Channel  # type: ignore[assignment]  # Twisted types it as its own switching wrapper
    requestFactory = MemoryRequest

    def __init__(
        self,
        resource: IResource,
        rules: SiteRules,
        reactor: IReactorTime,
        *,
        idle_seconds: float = IDLE_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
        taker: RelayHandler | None = None,
    ) -> None:
        # A body is no form to a resource, but for the one that reads it so itself.
        super().__init__(resource, timeout=idle_seconds, reactor=reactor, parsePOSTFormSubmission=False)  # type: ignore[no-untyped-call]
        if taker is not None:
            self.protocol, self.taker = RelayingChannel, taker
        self.rules = rules
        self._ports: Sequence[Port] = ()
        self.limiter = ConnectionLimiter(most_connections)
        self.turns = RequestTurns(reactor)
        self.request_seconds = request_seconds

    def startFactory(self) -> None:
        """Open no access log, and keep no clock for one."""
        self.limiter.closed = False

    def listens_at(self, ports: Sequence[IListeningPort]) -> None:
        """Say where it listens, once that is known; from then on few connections are accepted in a turn."""
        self._ports = [port for port in ports if isinstance(port, Port)]
        self._set_pace()

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Count each new connection, also one that is then refused, as one of few in this turn."""
        if self._ports and self._paced is None:
            self._paced = self.reactor.callLater(0, self._pace)
        return super().buildProtocol(addr)  # type: ignore[no-untyped-call]

    def _pace(self) -> None:
        """Have few connections accepted in the next turn, and none before it is time; the system queues them."""
        self._paced = None
        self._set_pace()
        pause = self.limiter.pause_seconds
        if pause:
            self._paced = self.reactor.callLater(pause, self._accept)
            for port in self._ports:
                port.stopReading()

    def _accept(self) -> None:
        self._paced = None
        self._set_pace()
        for port in self._ports:
            if port.connected and not port.disconnecting:
                port.startReading()

    def _set_pace(self) -> None:
        for port in self._ports:
            port.numberAccepts = max(1, self.limiter.most_in_a_turn // len(self._ports))  # it grows with the queue

    def stopFactory(self) -> None:
        """Nobody listens any more: take no more requests, by the connections that there are neither."""
        paced, self._paced = self._paced, None
        if paced is not None:
            paced.cancel()
        self.limiter.close()

    def log(self, request: Request) -> None:
        """Write no line per request: a path may hold a key."""
