"""Builds the proxy, which listens on this machine once the first session is given network access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import ServerFactory

from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.interfaces.governance import ITrustService
from aileron.model.interfaces.store import IAudit

from ._dialer import Dialer
from ._file import EgressFile
from ._proxy import ProxyConnection
from ._sessions import EgressSessions

_LOOPBACK = "127.0.0.1"
_MOST_CONNECTIONS = 1024


@define(eq=False)
class ProxyListener(ServerFactory):
    """The proxy's listening socket, and a limited number of connections to the proxy.

    :ivar sessions: admits the connections.
    :param own_ports: the daemon's ports, to which no sandbox is connected; the proxy's port is added.
    """

    noisy = False

    _reactor: Any
    _dialer: Dialer
    _own_ports: set[int]
    sessions: EgressSessions = field(init=False)
    _alive: dict[ProxyConnection, None] = field(init=False, factory=dict)
    _port: IListeningPort | None = field(init=False, default=None)

    def listen(self) -> int:
        """Start listening unless the proxy listens already, and return the port. The daemon's ports get it too."""
        if self._port is None:
            self._port = self._reactor.listenTCP(0, self, interface=_LOOPBACK)
        address: Any = self._port.getHost()
        number: int = address.port
        self._own_ports.add(number)
        return number

    async def stop(self) -> None:
        """Stop listening, close all connections, and return when their ends are recorded."""
        if self._port is not None:
            stopped = self._port.stopListening()
            if stopped is not None:
                await stopped
        for connection in tuple(self._alive):
            connection.cut()
        await self.sessions.stop()

    def buildProtocol(self, addr: IAddress | None) -> ProxyConnection | None:
        """Return the protocol of a new connection, or None if the connection must be closed.

        If there are as many connections as allowed, the oldest one without a request is closed. If every connection
        has a request, the new one is closed.
        """
        if len(self._alive) >= _MOST_CONNECTIONS:
            silent = next((each for each in self._alive if not each.host), None)
            if silent is None:
                return None
            del self._alive[silent]
            silent.cut()
        connection = ProxyConnection(self.sessions, self._dialer, self._reactor, self._forget)
        self._alive[connection] = None
        return connection

    def _forget(self, connection: ProxyConnection) -> None:
        self._alive.pop(connection, None)


def build(
    reactor: Any,
    file: EgressFile,
    *,
    trust: ITrustService,
    audit: IAudit,
    operator_limits: IOperatorLimits,
    ids: Callable[[], str],
    resolve: Callable[[str], Deferred[Sequence[str]]],
    own_ports: set[int],
) -> ProxyListener:
    """Build the proxy, which does not listen yet.

    :param ids: returns a fresh ULID at each call.
    :param resolve: resolves a host's name to addresses.
    """
    listener = ProxyListener(reactor, Dialer(reactor, resolve, lambda: own_ports), own_ports)
    listener.sessions = EgressSessions(
        file=file,
        trust=trust,
        audit=audit,
        operator_limits=operator_limits,
        clock=reactor,
        ids=ids,
        listen=listener.listen,
    )
    return listener
