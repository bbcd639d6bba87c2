"""The one way out of a sandbox: what connects inside is taken here, outside, and handed on to the daemon."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IReadDescriptor
from twisted.protocols.portforward import ProxyFactory, ProxyServer
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.model.sessions import SANDBOX_ADDRESS

from ._boundary import BoundaryCheck

_MOST_BYTES = 4096
_UNPROVEN = "Sandbox: the agent was not started, because its boundary could not be proven. {problem}."


@implementer(IReadDescriptor)
@define(eq=False)
class SocketForwarder:
    """Forwards connections from sockets that listen inside to the daemon, from C{open} until C{close}.

    :ivar factories: what takes the connections of each socket, in their order.
    :ivar meeting: by which the listening sockets come; its other end is inside.  It is the forwarder's to close.
    :ivar begun: called when they have come, before the agent starts.
    :ivar say: shows the user one line.
    :ivar check: of what else may lead out, which must come to nothing before the agent starts; L{None}: it is not made.
    :ivar proven: what the user is told when it did.
    """

    _reactor: Any
    _factories: Sequence[IProtocolFactory]
    _meeting: socket.socket
    _begun: Callable[[], object]
    _say: Callable[[str], object]
    _check: BoundaryCheck | None = None
    _proven: str = ""
    _listening: list[IListeningPort] = field(init=False, factory=list)

    def open(self) -> None:
        """Take the listening sockets as soon as they come."""
        self._meeting.setblocking(False)
        self._reactor.addReader(self)

    def close(self) -> None:
        """Take nothing more.  Twice is safe."""
        if self._meeting.fileno() >= 0:
            self._reactor.removeReader(self)
            self._meeting.close()
        while self._listening:
            self._listening.pop().stopListening()
        if self._check is not None:
            self._check.close()

    def fileno(self) -> int:
        """Return the descriptor by which the listening sockets come."""
        return self._meeting.fileno()

    def doRead(self) -> None:
        """Take the listening sockets that have come, if the sandbox has not ended without; then what was checked."""
        if self._listening:
            self._judge(self._meeting.recv(_MOST_BYTES))
            return
        _, descriptors, _, _ = socket.recv_fds(self._meeting, 1, len(self._factories))
        if descriptors:
            self._begun()
            self._meeting.send(b"\0")
        for descriptor, factory in zip(descriptors, self._factories, strict=False):
            os.set_blocking(descriptor, False)
            self._listening.append(self._reactor.adoptStreamPort(descriptor, socket.AF_INET, factory))
            os.close(descriptor)  # the reactor has a copy
        if self._check is None or not descriptors:
            self._leave()

    def _judge(self, piece: bytes) -> None:
        """Let the agent start if nothing else leads out; else what waits inside ends by itself."""
        problems = None if self._check is None else self._check.judge(piece)
        if problems is None:
            return
        if problems:
            self._say(_UNPROVEN.format(problem=". ".join(problems)))
        else:
            self._say(self._proven)
            self._meeting.send(b"\0")
        self._leave()

    def _leave(self) -> None:
        self._reactor.removeReader(self)
        self._meeting.close()

    def connectionLost(self, reason: Failure) -> None:
        """Note that the reactor is done with it."""
        self.close()

    def logPrefix(self) -> str:
        """Name it in the log."""
        return "sandbox"


def forward_to(reactor: Any, host: str, port: int) -> ProxyFactory:
    """Make what hands connections on to an address as they are, from the address that is for sandboxes."""

    class Server(ProxyServer):
        transport: Any

        def connectionMade(self) -> None:
            self.transport.pauseProducing()
            client = self.clientProtocolFactory()
            client.setServer(self)
            reactor.connectTCP(host, port, client, bindAddress=(SANDBOX_ADDRESS, 0))

    factory = ProxyFactory(host, port)
    factory.protocol = Server
    factory.noisy = False
    return factory
