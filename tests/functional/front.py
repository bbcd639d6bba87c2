"""What people put before a daemon to end TLS: it verifies nobody, names the daemon to itself, and notes what comes."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.internet.ssl import DefaultOpenSSLContextFactory
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from tests.functional.reactor import IKitReactor, until

_HOST = re.compile(rb"(?im)^host:[^\r\n]*")
_LENGTH = re.compile(rb"(?im)^content-length: *(\d+)")
_GONE = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 24\r\nConnection: close\r\n\r\n"
    b"<html>Bad Gateway</html>"
)


class _Back(Protocol):
    """The daemon's end of one connection."""

    transport: Any

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._take, self._lost = take, lost

    def dataReceived(self, data: bytes) -> None:
        """To the client."""
        self._take(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """So is the client's."""
        self._lost()


class _Ended(Protocol):
    """The client's end, after TLS: one request after another goes on to the daemon, under the daemon's own name."""

    transport: Any

    def __init__(self, front: "Front") -> None:
        self._front = front
        self._unread = b""
        self._body = 0
        self._held: list[bytes] = []
        self._back: _Back | None = None
        self._answered = self._over = False

    def dataReceived(self, data: bytes) -> None:
        """Note it, and send it on."""
        self._front.clear += data
        self._unread += data
        while self._unread and self._piece():
            pass

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """So is the daemon's."""
        self._over = True
        if self._back is not None:
            self._back.transport.loseConnection()

    def _piece(self) -> bool:
        """Send on a head or some of a body; whether there was one."""
        if not self._body:
            head, end, rest = self._unread.partition(b"\r\n\r\n")
            if not end:
                return False
            found = _LENGTH.search(head)
            self._body, self._unread, self._answered = int(found[1]) if found else 0, rest, False
            self._send(_HOST.sub(b"Host: 127.0.0.1:%d" % self._front.to, head) + end)
        sent, self._unread = self._unread[: self._body], self._unread[self._body :]
        self._body -= len(sent)
        self._send(sent)
        return True

    def _send(self, data: bytes) -> None:
        if self._back is not None:
            self._back.transport.write(data)
            return
        if not self._held:
            self._reach()
        self._held.append(data)

    def _reach(self) -> None:
        endpoint = TCP4ClientEndpoint(self._front.reactor, "127.0.0.1", self._front.to)
        reaching: Deferred[_Back] = connectProtocol(endpoint, _Back(self._take, self._gone))
        reaching.addCallbacks(self._reached, lambda _: self._gone())

    def _reached(self, back: _Back) -> None:
        self._back = back
        self._send(b"".join(self._held))
        if self._over:
            back.transport.loseConnection()

    def _take(self, data: bytes) -> None:
        self._answered = True
        self.transport.write(data)

    def _gone(self) -> None:
        """Nobody is there: whoever waits for an answer is told so, as servers do."""
        if not self._answered:
            self.transport.write(_GONE)
        self.transport.loseConnection()


class _Tap(ProtocolWrapper):
    """Notes what comes, as it travels."""

    def dataReceived(self, data: bytes) -> None:
        """Note it."""
        cast(Any, self.factory).front.wire += data
        super().dataReceived(data)  # type: ignore[no-untyped-call]


class _Tapped(WrappingFactory[_Tap]):
    protocol = _Tap
    noisy = False

    def __init__(self, front: "Front", wrapped: ServerFactory) -> None:
        super().__init__(wrapped)  # type: ignore[no-untyped-call]
        self.front = front


def _showing(pem: bytes) -> DefaultOpenSSLContextFactory:
    """OpenSSL's own choices, with a certificate: Twisted's have nothing in common with those of some agents."""
    with TemporaryDirectory() as directory:
        path = Path(directory, "chain.pem")
        path.write_bytes(pem)
        return DefaultOpenSSLContextFactory(str(path), str(path))


class Front(ServerFactory):
    """Ends TLS on a port of its own until it is stopped.

    :ivar to: the daemon's port.
    :ivar clear: all that came, as TLS gave it out.
    :ivar wire: the same, as it travelled.
    """

    noisy = False

    def __init__(self, reactor: IKitReactor, to: int) -> None:
        self.reactor, self.to = cast(Any, reactor), to
        self.clear = self.wire = b""
        self._tapped: _Tapped | None = None
        self._port: IListeningPort | None = None

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """One more connection."""
        return _Ended(self)

    def listen(self, pem: bytes) -> int:
        """Show this certificate, whose key is beside it; the port."""
        ending = cast(ServerFactory, TLSMemoryBIOFactory(_showing(pem), False, self))
        self._tapped = _Tapped(self, ending)
        self._port = self.reactor.listenTCP(0, self._tapped, interface="127.0.0.1")
        return cast(IPv4Address, self._port.getHost()).port

    async def stop(self) -> None:
        """Close the port and every connection, and return when they are gone."""
        port, tapped = self._port, self._tapped
        if port is None or tapped is None:
            return
        await maybeDeferred(port.stopListening)
        for connection in list(tapped.protocols):
            connection.abortConnection()
        await until(self.reactor, lambda: not tapped.protocols, 30, "connections closed")
