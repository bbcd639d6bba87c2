"""The network and the processes of a proof: hosts are checked as usual, and each connection stays in this process."""

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

_LOOPBACK, _PUBLIC = "127.0.0.1", "93.184.215.14"  # the latter is judged, and never connected to
_NOBODY = 1  # a port on which nothing listens


def _no_tls(host: str) -> Any:
    raise ValueError(f"No connection to {host} leaves this machine.")


STRANGER = "PROOF_OF_THE_DAEMON"
"""A variable of the daemon's environment, which no connector's file names."""


def surroundings(declared: ProgramEnvironment, directory: Path) -> ProgramEnvironment:
    """Return where a program of ours runs in place of a declared one.

    Its variables have no values of the file's: such a value can make a shell or a loader run whatever it names.
    """
    variables = dict.fromkeys(declared.variables, "sample")
    return evolve(declared, directory=str(directory), variables=variables, sandbox="none")


HTTP, SMTP, IMAP, STDIO = "http", "smtp", "imap", "stdio"
"""What is spoken on a connection; each has a port of its own, since some servers speak first."""


@define(eq=False)
class ProofNetwork:
    """Connects to the double, whatever host is asked for.

    :ivar build: makes what speaks on a connection of the double's.
    :ivar origins: where the connector may go, as it declares, and what is spoken there.
    :ivar strange: where else it went.
    :ivar refusing: whether nobody listens, as where a service is down.
    :ivar dialing: how many connections are being made.
    """

    reactor: Any
    build: Callable[[str], IProtocol]
    origins: Mapping[Origin, str] = field(factory=dict)
    refusing: bool = False
    strange: list[str] = field(factory=list)
    dialing: int = 0
    _ports: dict[str, Any] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        """Listen, on this machine alone."""
        for speech in (HTTP, SMTP, IMAP, STDIO):
            speaks: Any = partial(self.build, speech)
            factory = Factory.forProtocol(speaks)
            self._ports[speech] = self.reactor.listenTCP(0, factory, interface=_LOOPBACK)

    def begin(self, *, refusing: bool) -> None:
        """Forget what was before, for another run."""
        self.refusing = refusing
        self.strange.clear()

    async def close(self) -> None:
        """Listen no more."""
        for each in self._ports.values():
            await each.stopListening()

    def port(self, speech: str) -> int:
        """Return the port where something is spoken."""
        return _NOBODY if self.refusing else int(self._ports[speech].getHost().port)

    @property
    def transport(self) -> HttpTransport:
        """The daemon's transport, on this network."""
        return HttpTransport(ConnectionOpener(self.reactor, _resolve, _no_tls, lambda: (), self._reach))

    def _reach(self, origin: Origin) -> IStreamClientEndpoint:
        if origin not in self.origins:
            self.strange.append(origin.url)
        return _DoubleEndpoint(self, self.origins.get(origin, HTTP))

    def connect(self, speech: str, factory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect to the server of this process."""
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
    """Starts real processes, and takes the time from the clock of the proof.

    :ivar refusing: whether none can be started.
    """

    reactor: Any
    clock: Clock
    refusing: bool = False
    _started: list[Any] = field(factory=list)

    def spawnProcess(self, *arguments: Any, **options: Any) -> Any:
        """Start a process.

        :raises OSError: none can be.
        """
        if self.refusing:
            raise FileNotFoundError(ENOENT, "No such file or directory")
        process = self.reactor.spawnProcess(*arguments, **options)
        self._started.append(process)
        return process

    @property
    def running(self) -> int:
        """Count those that run."""
        self._started = [each for each in self._started if each.pid is not None]
        return len(self._started)

    def kill(self) -> None:
        """End those that run."""
        for each in self._started[: self.running]:
            with suppress(ProcessExitedAlready):
                each.signalProcess("KILL")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clock if name in ("callLater", "seconds") else self.reactor, name)


def _resolve(host: str) -> Deferred[Sequence[str]]:
    if read_address(host) is not None:
        return succeed([host])
    return succeed([_LOOPBACK if is_loopback(host) else _PUBLIC])
