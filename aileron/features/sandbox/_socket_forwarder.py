"""Forwards connections from inside a sandbox to the daemon. The sandbox has no other connection to the outside."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IReadDescriptor
from twisted.protocols.portforward import ProxyClient, ProxyClientFactory, ProxyFactory, ProxyServer
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.outgoing import send_at_once
from aileron.model.sessions import SANDBOX_ADDRESS

from ._boundary import BoundaryCheck

_MOST_BYTES = 4096
_UNPROVEN = "Sandbox: the agent was not started, because its boundary could not be proven. {problem}."


@implementer(IReadDescriptor)
@define(eq=False)
class SocketForwarder:
    """Forwards connections from sockets that listen inside a sandbox to the daemon, from L{open} until L{close}.

    :ivar factories: the factories for the connections of each socket, in order.
    :ivar meeting: the socket by which the listening sockets arrive. The forwarder closes it.
    :ivar begun: called when the listening sockets have arrived, before the agent starts.
    :ivar say: shows the user one line.
    :ivar check: the check that nothing else can be reached, which must pass before the agent starts, or None for no
        check.
    :ivar proven: the message for the user when the check passed.
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
        """Start waiting for the listening sockets, which the script in the sandbox sends."""
        self._meeting.setblocking(False)
        self._reactor.addReader(self)

    def close(self) -> None:
        """Stop forwarding. Idempotent."""
        if self._meeting.fileno() >= 0:
            self._reactor.removeReader(self)
            self._meeting.close()
        while self._listening:
            self._listening.pop().stopListening()
        if self._check is not None:
            self._check.close()

    def fileno(self) -> int:
        """Return the descriptor by which the listening sockets arrive."""
        return self._meeting.fileno()

    def doRead(self) -> None:
        """Receive the listening sockets and forward their connections, or afterwards receive the result of the check.

        C{begun} is called first. If the sandbox ends before it has sent the sockets, stop receiving.
        """
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
            os.close(descriptor)  # the reactor has its own copy
        if self._check is None or not descriptors:
            self._leave()

    def _judge(self, piece: bytes) -> None:
        """Process a piece of the check's report. When the report is complete, show the user its result.

        If the check passed, let the agent start. Otherwise the process inside ends without starting the agent.
        """
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
        """Do nothing when the reactor drops this reader."""
        self.close()

    def logPrefix(self) -> str:
        """Return the prefix of this object's lines in Twisted's log."""
        return "sandbox"


class _DaemonEnd(ProxyClient):
    """The connection to the daemon."""

    def connectionMade(self) -> None:
        send_at_once(self.transport)
        super().connectionMade()


class _DaemonEndFactory(ProxyClientFactory):
    """A factory of one connection to the daemon."""

    protocol = _DaemonEnd
    noisy = False


def forward_to(reactor: Any, host: str, port: int) -> ProxyFactory:
    """Return a factory that forwards connections unchanged to an address, from the source address of sandboxes."""

    class Server(ProxyServer):
        transport: Any
        clientProtocolFactory = _DaemonEndFactory

        def connectionMade(self) -> None:
            send_at_once(self.transport)
            self.transport.pauseProducing()
            client = self.clientProtocolFactory()
            client.setServer(self)  # type: ignore[no-untyped-call]
            reactor.connectTCP(host, port, client, bindAddress=(SANDBOX_ADDRESS, 0))

    factory = ProxyFactory(host, port)
    factory.protocol = Server
    factory.noisy = False
    return factory
