"""The other end of a connection, by its bytes."""

from __future__ import annotations

from typing import Any

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.test.iosim import IOPump, connect, makeFakeClient, makeFakeServer

from tests.connectors.certificate import Certificate


class Server(Protocol):
    """One connection to a web server."""

    def __init__(self, reactor: MemoryReactorClock) -> None:
        self._reactor = reactor
        self.taken = b""
        self.pump: IOPump | None = None

    def dataReceived(self, data: bytes) -> None:
        """Keep them."""
        self.taken += data

    @property
    def head(self) -> str:
        """Request line and headers."""
        return self.taken.partition(b"\r\n\r\n")[0].decode("ascii")

    @property
    def body(self) -> bytes:
        """What was posted."""
        return self.taken.partition(b"\r\n\r\n")[2]

    @classmethod
    def accept(cls, reactor: MemoryReactorClock, certificate: Certificate | None = None) -> Server:
        """Take the newest connection, and all that is sent; by TLS if there is a certificate."""
        _host, _port, factory, *_ = reactor.tcpClients.pop()
        server, client = cls(reactor), factory.buildProtocol(None)
        outer: Any = server
        if certificate is not None:
            listening = Factory.forProtocol(lambda: server)
            outer = certificate.serving(listening, reactor).buildProtocol(None)
        server.pump = pump = connect(outer, makeFakeServer(outer), client, makeFakeClient(client), clock=reactor)
        for _ in range(5):
            pump.flush()
            reactor.advance(0)
        return server

    def answer(self, said: bytes) -> None:
        """Answer, and let every byte arrive."""
        assert self.transport is not None
        self.transport.write(said)
        self.flush()

    def flush(self) -> None:
        """Let every byte arrive."""
        assert self.pump is not None
        self.pump.flush()
