"""Ends of connections in memory: a transport below, a protocol above, a TLS peer far away."""

from __future__ import annotations

import ssl
from typing import Any

from twisted.internet.interfaces import IProtocol, ITransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure


class Wire(StringTransport):
    """A transport as the reactor's are, where a string transport is stricter or knows less."""

    no_delay = False

    def take(self) -> bytes:
        """What was written since the last call."""
        written: bytes = self.value()
        self.clear()
        return written

    def unregisterProducer(self) -> None:
        """Twice is safe."""
        self.producer = self.streaming = None

    def setTcpNoDelay(self, enabled: bool) -> None:
        self.no_delay = enabled


def carry(protocol: IProtocol, wire: Wire) -> None:
    """Connect them."""
    protocol.makeConnection(wire)


class Above(Protocol):
    """Notes what it is told."""

    transport: Any

    def __init__(self) -> None:
        self.made = 0
        self.pieces: list[bytes] = []
        self.lost: list[Failure] = []

    @property
    def received(self) -> bytes:
        """All that came."""
        return b"".join(self.pieces)

    def connectionMade(self) -> None:
        self.made += 1

    def dataReceived(self, data: bytes) -> None:
        self.pieces.append(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost.append(reason)


class TlsPeer(Protocol):
    """A server's side of TLS.

    :ivar received: decrypted.
    :ivar closed: whether the client said C{close_notify}.
    :ivar broken: why the handshake failed.
    """

    transport: ITransport

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.received = b""
        self.closed = False
        self.broken: ssl.SSLError | None = None
        self.lost: list[Failure] = []
        self._shaken = False

    def dataReceived(self, data: bytes) -> None:
        answer = self.hear(data)
        if answer:
            self.transport.write(answer)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost.append(reason)

    def hear(self, data: bytes) -> bytes:
        """Take what the client sent; what there is to send back."""
        self._incoming.write(data)
        try:
            if not self._shaken:
                self.tls.do_handshake()
                self._shaken = True
            self._read()
        except ssl.SSLWantReadError:
            return self._outgoing.read()
        except ssl.SSLError as error:
            self.broken = error
        return self._outgoing.read()

    def say(self, data: bytes) -> bytes:
        """C{data}, encrypted."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view) :]
        return self._outgoing.read()

    def say_goodbye(self) -> bytes:
        """C{close_notify}."""
        try:
            self.tls.unwrap()
        except ssl.SSLError as error:
            self.broken = error
        return self._outgoing.read()

    def _read(self) -> None:
        while data := self.tls.read(65536):
            self.received += data
        self.closed = True


class Proxying(Protocol):
    """A proxy that consents, and carries on to what is behind it.

    :ivar asked: what came before its consent.
    """

    transport: ITransport

    def __init__(self, behind: TlsPeer) -> None:
        self.asked = b""
        self._behind = behind

    def dataReceived(self, data: bytes) -> None:
        """Consent, then carry."""
        if self.asked:
            self._behind.dataReceived(data)
            return
        self.asked = data
        self._behind.makeConnection(self.transport)
        self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """So is what is behind it."""
        self._behind.connectionLost(reason)
