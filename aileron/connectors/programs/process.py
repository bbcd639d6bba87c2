"""Runs a program in a process group of its own, and gathers what it writes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from aileron.model.errors import CapabilityDenied, InvalidRequest

from .enclosure import FILTER, MEETING, Confinement, Enclosure

_PROBLEM, _MOST_PROBLEM_BYTES = 4, 1000
_LINGER_SECONDS = 1.0
_BEGIN = """
import os, sys
os.setsid()
try:
    os.set_inheritable(4, False)
    directory, names, count, *rest = sys.argv[1:]
    os.chdir(directory)
    if os.getcwd() != directory:
        raise OSError(0, "its directory is reached through a link")
    for place, path in enumerate(rest[: int(count)], 10):
        opened = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        if os.readlink(f"/proc/self/fd/{opened}") != path:
            raise OSError(0, "what its sandbox protects is reached through a link")
        os.dup2(opened, place)
        os.close(opened)
    command = rest[int(count) :]
    os.execve(command[0], command, {name: os.environ[name] for name in names.split(",") if name in os.environ})
except BaseException as error:
    os.write(4, (getattr(error, "strerror", None) or "it could not be started").encode())
    os._exit(127)
"""
"""Makes a session, and with it a process group, which Twisted does not, and then becomes the program."""


@frozen
class Launch:
    """A program as it is started.

    :ivar argv: the program itself first.
    :ivar directory: where it works; it is not started where a link leads there.
    :ivar environment: all of it.
    :ivar enclosure: the sandbox around it; L{None}: there is none.
    :ivar confinement: that sandbox as it was built; without it the program is not started.
    :ivar meeting: the socket of L{MEETING}, which is closed when it has been passed on; L{None}: that is not open.
    """

    argv: Sequence[str]
    directory: str
    environment: Mapping[str, str] = field(repr=False)
    stdin: bytes = field(default=b"", repr=False)
    enclosure: Enclosure | None = None
    confinement: Confinement | None = field(default=None, eq=False)
    meeting: Any = field(default=None, repr=False)

    async def confine(self) -> Launch:
        """Build the sandbox, if it has one.

        :raises CapabilityDenied: something that runs outside could not be protected from the program.
        """
        if self.enclosure is None:
            return self
        try:
            return evolve(self, confinement=await self.enclosure.confine())
        except InvalidRequest as error:
            raise CapabilityDenied(f"The program's sandbox cannot be made. {error.message} Nothing was run.") from error


@frozen
class Ended:
    """The end of a program.

    :ivar code: its exit code; L{None}: a signal ended it.
    :ivar problem: why it was never started; empty: it was.
    :ivar is_cut: whether it wrote more than was kept.
    """

    code: int | None
    problem: str
    stdout: bytes
    stderr: bytes
    is_cut: bool


class Program(ProcessProtocol):
    """A program that leads a process group of its own, from its start to the end of the group."""

    transport: Any

    def __init__(self, clock: IReactorTime, launch: Launch) -> None:
        self._clock, self._launch = clock, launch
        self._problem = bytearray()
        self._group: int | None = None
        self._last_words: IDelayedCall | None = None

    @property
    def problem(self) -> str:
        """Why it was never started, as far as is known; empty: it was."""
        return self._problem.decode("utf-8", "replace")

    def start(self, reactor: Any) -> None:
        """Run it, with no descriptor of ours.

        :raises OSError: it could not be started.
        """
        launch, enclosure = self._launch, self._launch.enclosure
        built = launch.confinement or Confinement(())
        if (enclosure is None) != (launch.confinement is None):
            raise AssertionError("a program is started in the sandbox that was built for it")
        opened = (str(len(built.opened)), *built.opened)
        what = (launch.directory, ",".join(launch.environment), *opened, *built.argv, *launch.argv)
        begin = (sys.executable, "-I", "-S", "-c", _BEGIN, *what)
        descriptors: dict[int, int | str] = {0: "w", 1: "r", 2: "r", _PROBLEM: "r"}
        with contextlib.ExitStack() as held:
            if enclosure is not None:
                descriptors[FILTER] = held.enter_context(_filled(enclosure.seccomp)).fileno()
            if launch.meeting is not None:
                descriptors[MEETING] = held.enter_context(launch.meeting).fileno()
            reactor.spawnProcess(self, begin[0], begin, dict(launch.environment), None, childFDs=descriptors)

    def connectionMade(self) -> None:
        """Remember its process group."""
        self._group = self.transport.pid

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Note why it was never started, or hand over what it writes."""
        if childFD == _PROBLEM:
            self._problem += data[: _MOST_PROBLEM_BYTES - len(self._problem)]
        else:
            self.wrote(childFD, data)

    def wrote(self, descriptor: int, data: bytes) -> None:
        """Take what it writes; to be overridden."""
        raise NotImplementedError

    def processExited(self, reason: Failure) -> None:
        """End what it has started, and wait a little for the last words."""
        self.kill()
        self._group = None  # its number may be another's from here on
        self._last_words = self._clock.callLater(_LINGER_SECONDS, self.transport.loseConnection)

    def processEnded(self, reason: Failure) -> None:
        """Stop waiting."""
        if self._last_words is not None and self._last_words.active():
            self._last_words.cancel()

    def kill(self) -> None:
        """Kill it, and what is in its process group.  Twice is safe."""
        self.signal_group(signal.SIGKILL)
        with contextlib.suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to its process group, as long as there is one."""
        if self._group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)


class CommandProcess(Program):
    """One run of a program to its end.

    :ivar ended: fires when it and its process group are over; cancelling kills them.
    """

    def __init__(self, clock: IReactorTime, launch: Launch, most_bytes: int) -> None:
        super().__init__(clock, launch)
        self.ended: Deferred[Ended] = Deferred(lambda _: self.kill())
        self._most_bytes = most_bytes
        self._written: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._is_cut = False

    def connectionMade(self) -> None:
        """Write its input."""
        super().connectionMade()
        self.transport.writeToChild(0, self._launch.stdin)
        self.transport.closeChildFD(0)

    def wrote(self, descriptor: int, data: bytes) -> None:
        """Keep what it writes, up to a size."""
        room = self._most_bytes - len(self._written[descriptor])
        self._written[descriptor] += data[:room]
        self._is_cut = self._is_cut or len(data) > room

    def processEnded(self, reason: Failure) -> None:
        """Tell how it ended."""
        super().processEnded(reason)
        if self.ended.called:
            return
        code, number = (getattr(reason.value, name, None) for name in ("exitCode", "signal"))
        stdout, stderr = (bytes(each) for each in self._written.values())
        self.ended.callback(Ended(None if number else code, self.problem, stdout, stderr, self._is_cut))


def _filled(content: bytes) -> Any:
    """Open a pipe in which C{content} lies, far less than it holds, to be read."""
    reading, writing = os.pipe()
    with open(writing, "wb") as end:
        end.write(content)
    return open(reading, "rb")
