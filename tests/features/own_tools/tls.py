"""Tools that connect over real TLS, in memory, and a door that answers what a test says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from ssl import PROTOCOL_TLS_SERVER, MemoryBIO, SSLCertVerificationError, SSLContext, SSLWantReadError
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import Certificate, optionsForClientTLS
from twisted.internet.task import Clock
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from aileron.features.own_tools.values import ToolAnswer, ToolRequest, ToolService
from tests.features.gateway.net import End, Net

HOST = "api.example"


@define(eq=False)
class WaitingDoor:
    """A door that answers when the test says so.

    :ivar requests: the requests that came.
    :ivar waiting: the answers to the last of them, which the test gives.
    :ivar usual: the answer that is given at once, if there is one.
    """

    services: tuple[ToolService, ...] = ()
    requests: list[ToolRequest] = field(factory=list)
    waiting: list[Deferred[ToolAnswer]] = field(factory=list)
    usual: ToolAnswer | None = None
    cancelled: int = 0

    def find_services(self, names: tuple[str, ...]) -> tuple[ToolService, ...]:
        """Return the services of these names."""
        known = {each.name: each for each in self.services}
        return tuple(known[name] for name in names)

    async def handle(self, request: ToolRequest) -> ToolAnswer:
        """Note a request, and wait for its answer."""
        self.requests.append(request)
        if self.usual is not None:
            return self.usual
        self.waiting.append(Deferred(lambda _: self._cancel()))
        return await self.waiting[-1]

    def _cancel(self) -> None:
        self.cancelled += 1

    def answer(self, answer: ToolAnswer) -> None:
        """Answer the oldest request that waits."""
        self.waiting.pop(0).callback(answer)


class Tool(Protocol):
    """A tool inside TLS.

    :ivar got: the bytes that it received.
    :ivar reason: why its connection ended, or None.
    """

    transport: Any

    def __init__(self) -> None:
        self.got = b""
        self.reason: Failure | None = None

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Failure = Failure(ConnectionError())) -> None:  # noqa: B008
        self.reason = reason


def make_tool(clock: Clock, authority: str, name: str = HOST, *protocols: bytes) -> tuple[Tool, Any]:
    """Return a tool, and the protocol below TLS by which it is connected.

    :param authority: the certificate of the only authority that it trusts.
    :param name: the server name that it asks for, and expects.
    :param protocols: what it offers by ALPN.
    """
    tool = Tool()
    root = Certificate.loadPEM(authority.encode())
    options = optionsForClientTLS(name, trustRoot=root, acceptableProtocols=list(protocols) or None)
    factory = TLSMemoryBIOFactory(options, True, Factory.forProtocol(lambda: tool), clock)
    factory.protocol = TLSMemoryBIOProtocol
    return tool, factory.buildProtocol(None)


def openssl_connects(client: SSLContext, server: str, name: str | None = None) -> bool:
    """Return whether OpenSSL's client connects to a server, without a socket.

    :param server: the path of the server's certificate and key.
    :param name: the server name that the client asks for.
    """
    own = SSLContext(PROTOCOL_TLS_SERVER)
    own.load_cert_chain(server)
    there, back = MemoryBIO(), MemoryBIO()
    ends = client.wrap_bio(back, there, server_hostname=name), own.wrap_bio(there, back, True)
    try:
        for end in ends * 2:
            with contextlib.suppress(SSLWantReadError):
                end.do_handshake()
    except SSLCertVerificationError:
        return False
    return True


class Served(Protocol):
    """A connection below TLS that is served as soon as it is made."""

    transport: Any

    def __init__(self, serve: Callable[[Any], Any]) -> None:
        self._serve = serve
        self.served: Any = None

    def connectionMade(self) -> None:
        self.served = self._serve(self.transport)

    def dataReceived(self, data: bytes) -> None:
        self.served.dataReceived(data)

    def connectionLost(self, reason: Failure = Failure(ConnectionError())) -> None:  # noqa: B008
        self.served.connectionLost(reason)


__all__ = ["HOST", "End", "Net", "Served", "Tool", "WaitingDoor", "make_tool", "openssl_connects"]
