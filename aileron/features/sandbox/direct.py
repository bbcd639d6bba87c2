"""Serves the connections of programs in a sandbox that ignore the proxy and connect to a host's port of HTTPS.

The sandbox's C{/etc/hosts} leads the names of some hosts to the sandbox itself. The launcher reads from the TLS hello
which of them a program means, and asks the proxy for it in the program's place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from attrs import frozen
from twisted.internet.interfaces import IAddress, IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from zope.interface import directlyProvides, providedBy

HELLO_SECONDS = 15
"""The time for a program to send its TLS hello."""

HOSTS_FILE = "/etc/hosts"
_MOST_CONNECTIONS = 128
_MOST_HEAD_BYTES = 16 * 1024
_GOOD = b"HTTP/1.1 200 "
_END = b"\r\n\r\n"
_UNKNOWN_NAME = bytes.fromhex("15030300020270")
"""A fatal alert of TLS (RFC 8446, section 6.2): there is no server of this name."""


@frozen
class DirectHosts:
    """The hosts that programs in a sandbox reach even if they ignore the proxy.

    :ivar names: the names, in lower case. Their port is that of HTTPS.
    :ivar read_name: returns the server's name in the first bytes of a TLS client, or None if more bytes are needed, and
        raises ValueError if they cannot be the beginning of a hello with exactly one visible name.
    """

    names: frozenset[str]
    read_name: Callable[[bytes], str | None]


@contextmanager
def lead_here(names: Collection[str], path: str = HOSTS_FILE) -> Iterator[Mapping[str, str]]:
    """Provide a file that is mounted in place of the system's list of hosts, by its path, within the context.

    In the file these names stand for the sandbox itself.

    :raises OSError: if the system has no list of hosts.
    """
    target = os.path.realpath(path)
    lines = Path(target).read_text(encoding="utf-8", errors="replace").splitlines()
    kept = (line for line in lines if set(names).isdisjoint(line.partition("#")[0].lower().split()[1:]))
    with NamedTemporaryFile("w", prefix="aileron-hosts-", encoding="utf-8", errors="replace") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write("\n".join((*(f"127.0.0.1 {name}" for name in sorted(names)), *kept, "")))
        file.flush()
        yield {target: file.name}


class _DirectStage(Enum):
    """The progress of a connection.

    C{ASKING}: the proxy is asked for the host. C{ANSWER}: the proxy has the request, and its answer is awaited.
    """

    HELLO = auto()
    ASKING = auto()
    ANSWER = auto()
    OPEN = auto()
    REFUSED = auto()


class _DirectConnection(ProtocolWrapper):
    """A program's connection to a host, wrapped around the protocol for programs that use the proxy."""

    factory: Any
    transport: Any
    wrappedProtocol: Any

    def __init__(self, factory: Any, proxied: Any, hosts: DirectHosts, clock: IReactorTime) -> None:
        super().__init__(factory, Protocol())
        self._proxied, self._hosts, self._clock = proxied, hosts, clock
        self._stage = _DirectStage.HELLO
        self._held = self._head = b""
        self._patience: IDelayedCall | None = None
        self._is_begun = False

    def makeConnection(self, transport: Any) -> None:
        """Start the timer of the hello. The wrapped protocol is connected once it has arrived."""
        directlyProvides(self, providedBy(transport))
        self.transport = transport
        self.factory.registerProtocol(self)
        self._patience = self._clock.callLater(HELLO_SECONDS, self.transport.abortConnection)

    def dataReceived(self, data: bytes) -> None:
        """Read the hello, and afterwards pass on what the program sends."""
        if self._stage in (_DirectStage.ANSWER, _DirectStage.OPEN):
            self.wrappedProtocol.dataReceived(data)
        elif self._stage is not _DirectStage.REFUSED:
            self._held += data
            if self._stage is _DirectStage.HELLO:
                self._read_hello()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Stop the timer, and report the loss to the wrapped protocol if it was connected."""
        self._stop_waiting()
        self.factory.unregisterProtocol(self)
        if self._is_begun:
            self.wrappedProtocol.connectionLost(reason)

    def resumeProducing(self) -> None:
        """Resume reading. The first call means that the proxy is connected: ask it for the host."""
        if self._stage is _DirectStage.ASKING:
            self._stage = _DirectStage.ANSWER
            held, self._held = self._held, b""
            self.wrappedProtocol.dataReceived(held)
        self.transport.resumeProducing()

    def write(self, data: bytes) -> None:
        """Pass on what the host sends. The proxy's answer comes before it, and is not passed on."""
        if self._stage is _DirectStage.OPEN:
            self.transport.write(data)
        elif self._stage is not _DirectStage.REFUSED:
            self._head += data
            self._read_answer()

    def _read_hello(self) -> None:
        try:
            name = self._hosts.read_name(self._held)
        except ValueError:
            self._refuse()
            return
        if name is None:
            return
        # guard of own tools: a name of another host leads nowhere
        #    -> features.sandbox.test_direct.ConnectionTests.test_other_name
        if name not in self._hosts.names:
            self._refuse()
            return
        proxied = self._proxied.buildProtocol(self.transport.getPeer())
        if proxied is None:
            self._refuse()
            return
        self._stop_waiting()
        self._stage, self._is_begun, self.wrappedProtocol = _DirectStage.ASKING, True, proxied
        self._held = f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode("ascii") + self._held
        proxied.makeConnection(self)

    def _read_answer(self) -> None:
        head, end, rest = self._head.partition(_END)
        if not end and len(self._head) < _MOST_HEAD_BYTES:
            return
        if not end or not head.startswith(_GOOD):
            self._refuse()
            return
        self._stage, self._head = _DirectStage.OPEN, b""
        self.transport.write(rest)

    def _refuse(self) -> None:
        self._stop_waiting()
        self._stage = _DirectStage.REFUSED
        self.transport.write(_UNKNOWN_NAME)
        self.transport.loseConnection()

    def _stop_waiting(self) -> None:
        if self._patience is not None and self._patience.active():
            self._patience.cancel()


class DirectFactory(WrappingFactory):
    """The factory of the connections to the port of HTTPS in a sandbox.

    :param proxied: the factory of the connections to the proxy in the sandbox.
    """

    noisy = False

    def __init__(self, proxied: ServerFactory, hosts: DirectHosts, clock: IReactorTime) -> None:
        super().__init__(proxied)  # type: ignore[no-untyped-call]
        self._proxied, self._hosts, self._clock = proxied, hosts, clock

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a connection, or None if there are too many."""
        if len(self.protocols) >= _MOST_CONNECTIONS:
            return None
        return _DirectConnection(self, self._proxied, self._hosts, self._clock)
