"""A provider on loopback that keeps each request as the bytes that came, and answers with bytes."""

from __future__ import annotations

import re
from typing import cast

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IListeningPort, ITCPTransport
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.python.failure import Failure

from tests.functional.reactor import IKitReactor, until

SAID = b'{"said": "well"}'
WELL = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SAID), SAID)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class _Connection(Protocol):
    """One connection."""

    def __init__(self, shared: _Connections) -> None:
        self._shared = shared
        self._come = b""

    def connectionMade(self) -> None:
        """It is there."""
        self._shared.open.add(self)

    def dataReceived(self, data: bytes) -> None:
        """Answer a request once it is whole."""
        self._come += data
        head, end, body = self._come.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if end and len(body) >= int(length[1] if length else 0):
            self._shared.requests.append(self._come)
            self._come = b""
            self.socket.write(self._shared.answers.pop(0) if self._shared.answers else WELL)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is gone."""
        self._shared.open.discard(self)

    @property
    def socket(self) -> ITCPTransport:
        """What it is spoken through."""
        return cast(ITCPTransport, self.transport)


class _Connections(ServerFactory):
    """What all of them share."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answers: list[bytes] = []
        self.open: set[_Connection] = set()

    def buildProtocol(self, addr: object) -> _Connection:
        """One more."""
        return _Connection(self)


@attrs.frozen
class RawProvider:
    """Listening from C{listen} until C{stop}."""

    _reactor: IKitReactor
    _connections: _Connections
    _port: IListeningPort

    @classmethod
    def listen(cls, reactor: IKitReactor, port: int = 0) -> RawProvider:
        """At a port; 0: a free one."""
        connections = _Connections()
        return cls(reactor, connections, reactor.listenTCP(port, connections, interface="127.0.0.1"))

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return cast(IPv4Address, self._port.getHost()).port

    @property
    def requests(self) -> list[bytes]:
        """Each as it came."""
        return self._connections.requests

    def will_answer(self, *answers: bytes) -> None:
        """Answer the next requests so."""
        self._connections.answers.extend(answers)

    async def stop(self) -> None:
        """Close the port and every connection."""
        await maybeDeferred(self._port.stopListening)
        for connection in list(self._connections.open):
            connection.socket.abortConnection()
        await until(self._reactor, lambda: not self._connections.open, 30, "connections closed")
