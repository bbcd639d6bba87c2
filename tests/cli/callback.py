"""A browser of the tests' own that comes back to the callback, in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.testing import MemoryReactorClock, StringTransport

Answered = tuple[int, dict[str, str], str]
"""Status, headers by lower-case name, and body."""


class CallbackReactor(MemoryReactorClock):
    """A reactor on which a sign-in listens, with a browser that can come.

    :ivar stopped: how often listening was ended.
    """

    port = 4711

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stopped = 0

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:
        """Listen, and remember the factory."""
        super().listenTCP(port, factory, backlog, interface)  # type: ignore[no-untyped-call]
        factory.startFactory()
        return _Port(self, port or self.port)

    def visit(self, target: str, *, method: str = "GET", host: str | None = None, visits: int = 1) -> Answered:
        """Come to the newest listener, so many times on one connection, and return its last answer."""
        port, factory, _backlog, _interface = self.tcpServers[-1]
        host = f"127.0.0.1:{port or self.port}" if host is None else host
        transport = StringTransport()
        channel: Any = factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 50000))
        channel.makeConnection(transport)
        for _ in range(visits):
            transport.clear()
            channel.dataReceived(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
        head, _, body = transport.value().decode().partition("\r\n\r\n")
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(first.split()[1]), headers, body


class _Port:
    def __init__(self, reactor: CallbackReactor, port: int) -> None:
        self._reactor, self._port = reactor, port

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", self._port)

    def stopListening(self) -> None:
        self._reactor.stopped += 1
