"""The network and processes of a proof: hosts are checked as usual, but all connections lead to the double."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from errno import ENOENT
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProtocol, IProtocolFactory, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock
from zope.interface import implementer

from aileron.base.addresses import Origin, is_loopback, read_address
from aileron.connectors import ConnectionOpener, HttpTransport, ProgramEnvironment

_LOOPBACK, _PUBLIC = "127.0.0.1", "93.184.215.14"  # the latter is only checked, never connected to
_NOBODY = 1  # a port on which nothing listens


def _no_tls(host: str) -> Any:
    raise ValueError(f"No connection to {host} leaves this machine.")


STRANGER = "PROOF_OF_THE_DAEMON"
"""The name of a variable in the daemon's environment that no connector's file declares."""


def surroundings(declared: ProgramEnvironment, directory: Path) -> ProgramEnvironment:
    """Return the environment in which the double's program runs in place of a declared program.

    The variables get sample values, not the file's: those could make a shell or a loader run arbitrary code.
    """
    variables = dict.fromkeys(declared.variables, "sample")
    return evolve(declared, directory=str(directory), variables=variables, sandbox="none")


HTTP, SMTP, IMAP, STDIO = "http", "smtp", "imap", "stdio"
"""The protocols. Each has a port of its own, since some servers speak first."""


@define(eq=False)
class ProofNetwork:
    """A network on which every host leads to the double.

    :ivar build: makes the double's protocol for a new connection.
    :ivar origins: the protocols of the origins that the connector declares.
    :ivar refusing: whether connections are refused, as by a service that is down.
    :ivar strange: the URLs of undeclared origins to which the connector connected.
    :ivar dialing: how many connections are being opened.
    """

    reactor: Any
    build: Callable[[str], IProtocol]
    origins: Mapping[Origin, str] = field(factory=dict)
    refusing: bool = False
    strange: list[str] = field(factory=list)
    dialing: int = 0
    _ports: dict[str, Any] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        """Listen on one loopback port for each protocol."""
        for speech in (HTTP, SMTP, IMAP, STDIO):
            speaks: Any = partial(self.build, speech)
            factory = Factory.forProtocol(speaks)
            self._ports[speech] = self.reactor.listenTCP(0, factory, interface=_LOOPBACK)

    def begin(self, *, refusing: bool) -> None:
        """Forget what was noted, before the next run of the connector.

        :param refusing: whether the network refuses connections in this run.
        """
        self.refusing = refusing
        self.strange.clear()

    async def close(self) -> None:
        """Stop listening for connections."""
        for each in self._ports.values():
            await each.stopListening()

    def port(self, speech: str) -> int:
        """Return the port of a protocol, or an unused port if connections are refused."""
        return _NOBODY if self.refusing else int(self._ports[speech].getHost().port)

    @property
    def transport(self) -> HttpTransport:
        """The daemon's HTTP transport, connecting through this network."""
        return HttpTransport(ConnectionOpener(self.reactor, _resolve, _no_tls, lambda: (), self._reach))

    def _reach(self, origin: Origin) -> IStreamClientEndpoint:
        if origin not in self.origins:
            self.strange.append(origin.url)
        return _DoubleEndpoint(self, self.origins.get(origin, HTTP))

    def connect(self, speech: str, factory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect to the double. C{dialing} counts the attempt until it ends."""
        self.dialing += 1
        made: Deferred[IProtocol] = TCP4ClientEndpoint(self.reactor, _LOOPBACK, self.port(speech)).connect(factory)
        return made.addBoth(self._count_down)

    def _count_down(self, result: Any) -> Any:
        self.dialing -= 1
        return result


@implementer(IStreamClientEndpoint)
@frozen
class _DoubleEndpoint:
    network: ProofNetwork
    speech: str

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        return self.network.connect(self.speech, protocolFactory)


@define(eq=False)
class ProofReactor:
    """A reactor that starts real processes and uses the clock of the proof.

    :ivar refusing: whether starting a process fails.
    """

    reactor: Any
    clock: Clock
    refusing: bool = False
    _started: list[Any] = field(factory=list)

    def spawnProcess(self, *arguments: Any, **options: Any) -> Any:
        """Start a process.

        :raises OSError: if the reactor is refusing.
        """
        if self.refusing:
            raise FileNotFoundError(ENOENT, "No such file or directory")
        process = self.reactor.spawnProcess(*arguments, **options)
        self._started.append(process)
        return process

    @property
    def running(self) -> int:
        """The number of started processes that still run."""
        self._started = [each for each in self._started if each.pid is not None]
        return len(self._started)

    def kill(self) -> None:
        """Kill the processes that still run."""
        for each in self._started[: self.running]:
            with suppress(ProcessExitedAlready):
                each.signalProcess("KILL")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clock if name in ("callLater", "seconds") else self.reactor, name)


def _resolve(host: str) -> Deferred[Sequence[str]]:
    if read_address(host) is not None:
        return succeed([host])
    return succeed([_LOOPBACK if is_loopback(host) else _PUBLIC])
