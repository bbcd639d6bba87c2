"""A balancer of HTTP connections, as stands before several daemons: one after the other, and none that is gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

_HOST = re.compile(rb"(?im)^host: [^\r\n]*")


class _Behind(Protocol):
    """The connection to a daemon."""

    transport: Any

    def __init__(self, client: _Before) -> None:
        self._client = client

    def dataReceived(self, data: bytes) -> None:
        self._client.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._client.transport.loseConnection()


class _Before(Protocol):
    """The connection of a client, which makes one request on it."""

    transport: Any

    def __init__(self, balancer: Balancer) -> None:
        self._balancer, self._waiting = balancer, b""
        self._behind: Any = None

    def connectionMade(self) -> None:
        connecting = Deferred.fromCoroutine(self._connect())
        connecting.addErrback(lambda _: self.transport.loseConnection())

    async def _connect(self) -> None:
        for _ in self._balancer.ports():
            port = self._balancer.next_port()
            end = HostnameEndpoint(self._balancer.reactor, b"127.0.0.1", port)
            try:
                self._behind = await end.connect(Factory.forProtocol(lambda: _Behind(self)))
            except Exception:  # noqa: BLE001 - the next one is tried
                continue
            self._balancer.chosen.append(port)
            self._send(_HOST.sub(f"Host: 127.0.0.1:{port}".encode(), self._waiting, count=1))
            return
        self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        if self._behind is None:
            self._waiting += data
        else:
            self._send(_HOST.sub(f"Host: 127.0.0.1:{self._balancer.chosen[-1]}".encode(), data, count=1))

    def _send(self, data: bytes) -> None:
        self._behind.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._behind is not None:
            self._behind.transport.loseConnection()


class Balancer:
    """Listens at a port of loopback.

    :param ports: returns the ports of the daemons that are there.
    :ivar chosen: the port that each connection went to.
    """

    def __init__(self, reactor: Any, ports: Callable[[], Sequence[int]]) -> None:
        self.reactor, self.ports, self.chosen = reactor, ports, list[int]()
        self._turns = count()
        self._listening = reactor.listenTCP(0, Factory.forProtocol(lambda: _Before(self)), interface="127.0.0.1")

    def next_port(self) -> int:
        """The port whose turn it is."""
        ports = self.ports()
        return ports[next(self._turns) % len(ports)]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getHost().port}"

    async def stop(self) -> None:
        await self._listening.stopListening()
