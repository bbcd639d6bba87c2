"""The one way out of a sandbox: what connects inside is taken here, outside, and handed on to the agent site."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IListeningPort, IReadDescriptor
from twisted.protocols.portforward import ProxyFactory, ProxyServer
from twisted.python.failure import Failure
from zope.interface import implementer


@implementer(IReadDescriptor)
@define(eq=False)
class SocketForwarder:
    """Forwards connections from a socket that listens inside to the daemon, from C{open} until C{close}.

    :ivar host: of the agent site.
    :ivar port: of the agent site, and inside.
    :ivar meeting: by which the listening socket comes; its other end is inside.  It is the forwarder's to close.
    :ivar begun: called when that has come, before the agent starts.
    """

    _reactor: Any
    _host: str
    _port: int
    _meeting: socket.socket
    _begun: Callable[[], object]
    _listening: IListeningPort | None = field(init=False, default=None)

    def open(self) -> None:
        """Take the listening socket as soon as it comes."""
        self._meeting.setblocking(False)
        self._reactor.addReader(self)

    def close(self) -> None:
        """Take nothing more.  Twice is safe."""
        if self._meeting.fileno() >= 0:
            self._reactor.removeReader(self)
            self._meeting.close()
        if self._listening is not None:
            self._listening.stopListening()
            self._listening = None

    def fileno(self) -> int:
        """Return the descriptor by which the listening socket comes."""
        return self._meeting.fileno()

    def doRead(self) -> None:
        """Take the one listening socket that has come, if the sandbox has not ended without one."""
        _, descriptors, _, _ = socket.recv_fds(self._meeting, 1, 1)
        self._reactor.removeReader(self)
        if descriptors:
            self._begun()
            self._meeting.send(b"\0")
        self._meeting.close()
        for descriptor in descriptors:
            os.set_blocking(descriptor, False)
            self._listening = self._reactor.adoptStreamPort(descriptor, socket.AF_INET, self._factory())
            os.close(descriptor)  # the reactor has a copy

    def connectionLost(self, reason: Failure) -> None:
        """Note that the reactor is done with it."""
        self.close()

    def logPrefix(self) -> str:
        """Name it in the log."""
        return "sandbox"

    def _factory(self) -> ProxyFactory:
        class Server(ProxyServer):
            reactor = self._reactor

        factory = ProxyFactory(self._host, self._port)
        factory.protocol = Server
        factory.noisy = False
        return factory
