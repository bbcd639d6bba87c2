"""A port that adds an agent's token, which the judges cannot send, and names what they ask for as we do."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from tests.conformance.names import Names
from tests.functional.reactor import IKitReactor


class Way(Protocol):
    """One direction of a connection, where the other lies, and what becomes of what goes by."""

    other: Protocol | None = None
    changed: Callable[[bytes], bytes] = bytes

    def dataReceived(self, data: bytes) -> None:
        """Hand it on."""
        assert self.other is not None and self.other.transport is not None
        self.other.transport.write(self.changed(data))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Neither end without the other."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.loseConnection()


class Inward(Way):
    """From a judge: one request a connection, with the token, and our Host where it named this port."""

    def __init__(self, adding: AddingToken) -> None:
        self._adding = adding
        self._held = b""
        self._asked = False

    def connectionMade(self) -> None:
        """Send at once what is sent."""
        cast(ITCPTransport, self.transport).setTcpNoDelay(True)

    def dataReceived(self, data: bytes) -> None:
        """Change the whole of it, once it is there."""
        if self.other is not None:
            super().dataReceived(data)
            return
        self._held += data
        whole = self._adding.names.request(self._held)
        if whole is not None and not self._asked:
            self._asked = True
            head, _, rest = whole.partition(b"\r\n\r\n")
            self._held = self._adding.changed(head) + b"\r\n\r\n" + rest
            self._adding.further().addCallbacks(self._connected, lambda _: self._nobody())

    def _connected(self, outward: Way) -> None:
        self.other, outward.other = outward, self
        outward.changed = self._adding.names.answer
        super().dataReceived(self._held)

    def _nobody(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()


class AddingToken(Factory):
    """Listens for judges.

    :ivar port: of this; set once it listens.
    :ivar names: the judge's, and what is ours by them.
    """

    noisy = False

    def __init__(self, reactor: IKitReactor, target_port: int, token: str, names: Names) -> None:
        self._reactor, self._target, self._token = reactor, target_port, token
        self.names = names
        self.port = 0

    def buildProtocol(self, addr: object) -> Protocol:
        """One connection."""
        return Inward(self)

    def further(self) -> Deferred[Way]:
        """Connect to the daemon."""
        endpoint = TCP4ClientEndpoint(self._reactor, "127.0.0.1", self._target)
        return cast("Deferred[Way]", endpoint.connect(Factory.forProtocol(Way)))

    def changed(self, head: bytes) -> bytes:
        """The head with what the judge could not say."""
        first, *lines = head.split(b"\r\n")
        dropped = (b"connection:", b"authorization:")
        kept = [self._renamed(line) for line in lines if not line.lower().startswith(dropped)]
        return b"\r\n".join([first, *kept, b"Connection: close", b"Authorization: Bearer " + self._token.encode()])

    def _renamed(self, line: bytes) -> bytes:
        if not line.lower().startswith((b"host:", b"origin:")):
            return line
        ours = b"127.0.0.1:%d" % self._target
        return line.replace(b"localhost:%d" % self.port, ours).replace(b"127.0.0.1:%d" % self.port, ours)
