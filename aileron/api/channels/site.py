"""A site of the daemon, which serves HTTP resources over connections of the class L{Channel}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any

from attrs import evolve
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
    """A site whose connections follow L{SiteRules}.

    :ivar taker: the handler that is offered each request before its body, or None.
    :ivar rules: the rules. They may be replaced once the port is known. Without hosts they refuse every request.
    :ivar limiter: the limiter of its connections.
    :ivar turns: the scheduler of requests.
    :ivar request_seconds: the time limit for receiving one request, head and body.
    :ivar ids: returns a new id of a request at each call.
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
        ids: Callable[[], str] | None = None,
    ) -> None:
        # No body is parsed as a form, except by the one resource that parses it itself.
        super().__init__(resource, timeout=idle_seconds, reactor=reactor, parsePOSTFormSubmission=False)  # type: ignore[no-untyped-call]
        if taker is not None:
            self.protocol, self.taker = RelayingChannel, taker
        self.rules = rules
        self._ports: Sequence[Port] = ()
        self.limiter = ConnectionLimiter(most_connections)
        self.turns = RequestTurns(reactor)
        self.request_seconds = request_seconds
        self.ids = ids or _random_id

    def startFactory(self) -> None:
        """Start to accept connections, without the base class's access log and its timer."""
        self.limiter.closed = False

    def listens_at(self, ports: Sequence[IListeningPort]) -> None:
        """Set the listening ports, and limit from now on how many connections they accept in a turn of the reactor."""
        self._ports = [port for port in ports if isinstance(port, Port)]
        self._set_pace()

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a new connection, and count it in this turn even if it is then refused."""
        if self._ports and self._paced is None:
            self._paced = self.reactor.callLater(0, self._pace)
        return super().buildProtocol(addr)  # type: ignore[no-untyped-call]

    def _pace(self) -> None:
        """Set how many connections are accepted in the next turn of the reactor.

        If the limiter requires a pause, accept none until it is over. The operating system queues them meanwhile.
        """
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
            port.numberAccepts = max(1, self.limiter.most_in_a_turn // len(self._ports))  # grows with the queue

    def stopFactory(self) -> None:
        """Close the site after the ports are closed: accept no more requests on existing connections."""
        paced, self._paced = self._paced, None
        if paced is not None:
            paced.cancel()
        self.limiter.close()

    def refuse_work(self) -> None:
        """From now on, accept only reads of the API, because the daemon stops and others go on."""
        rules = self.rules
        self.rules = evolve(rules, hosts=[host.decode("ascii") for host in rules.hosts], is_stopping=True)

    @property
    def is_working(self) -> bool:
        """True if an answer is owed to a request that may change something."""
        return any(isinstance(each, Channel) and each.is_working for each in self.limiter.connections)

    def log(self, request: Request) -> None:
        """Log nothing here: the channel logs each request, without its path, since a path may contain a key."""


def _random_id() -> str:
    """Return a random id of a request, with the characters of a ULID."""
    return token_hex(13).upper()
