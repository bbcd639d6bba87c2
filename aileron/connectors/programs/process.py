"""Runs a program in its own process group, and collects its output."""

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
"""Creates a session with a new process group, which Twisted does not, and then executes the program."""


@frozen
class Launch:
    """A program to start.

    :ivar argv: the program itself first.
    :ivar directory: the working directory. If its path contains a link, the program is not started.
    :ivar environment: all variables.
    :ivar enclosure: its sandbox, or None.
    :ivar confinement: the sandbox as built. Without it, a program with C{enclosure} is not started.
    :ivar meeting: the socket for L{MEETING}, which is closed after it was passed on, or None.
    """

    argv: Sequence[str]
    directory: str
    environment: Mapping[str, str] = field(repr=False)
    stdin: bytes = field(default=b"", repr=False)
    enclosure: Enclosure | None = None
    confinement: Confinement | None = field(default=None, eq=False)
    meeting: Any = field(default=None, repr=False)

    async def confine(self) -> Launch:
        """Build the sandbox, if there is one.

        :raises CapabilityDenied: if a file that other programs load could not be protected.
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

    :ivar code: its exit code, or None if a signal ended it.
    :ivar problem: the reason why it was not started, or empty if it was.
    :ivar is_cut: whether it wrote more than was stored.
    """

    code: int | None
    problem: str
    stdout: bytes
    stderr: bytes
    is_cut: bool


class Program(ProcessProtocol):
    """A program that leads its own process group, from its start to the end of the group."""

    transport: Any

    def __init__(self, clock: IReactorTime, launch: Launch) -> None:
        self._clock, self._launch = clock, launch
        self._problem = bytearray()
        self._group: int | None = None
        self._last_words: IDelayedCall | None = None

    @property
    def problem(self) -> str:
        """The known reason why the program was not started, or empty."""
        return self._problem.decode("utf-8", "replace")

    def start(self, reactor: Any) -> None:
        """Start a process that executes the program.

        The process inherits none of the daemon's descriptors except those for its sandbox.
        If the process cannot execute the program, L{problem} contains the reason later.

        :raises OSError: if no process could be created.
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
        """Remember the id of the program's process group, so that it can be killed."""
        self._group = self.transport.pid

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Store the reason why the program was not started, or pass its output on."""
        if childFD == _PROBLEM:
            self._problem += data[: _MOST_PROBLEM_BYTES - len(self._problem)]
        else:
            self.wrote(childFD, data)

    def wrote(self, descriptor: int, data: bytes) -> None:
        """Handle bytes that the program wrote to a file descriptor. Subclasses override this."""
        raise NotImplementedError

    def processExited(self, reason: Failure) -> None:
        """Kill the process group, and wait briefly for remaining output."""
        self.kill()
        self._group = None  # the number may be reused from now on
        self._last_words = self._clock.callLater(_LINGER_SECONDS, self.transport.loseConnection)

    def processEnded(self, reason: Failure) -> None:
        """Cancel the timer that L{processExited} started, since all output of the program was read."""
        if self._last_words is not None and self._last_words.active():
            self._last_words.cancel()

    def kill(self) -> None:
        """Kill the program and its process group. Idempotent."""
        self.signal_group(signal.SIGKILL)
        with contextlib.suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process group, if there is one."""
        if self._group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)


class CommandProcess(Program):
    """One run of a program to its end.

    :ivar ended: fires when the program and its process group have ended. Cancelling kills both.
    """

    def __init__(self, clock: IReactorTime, launch: Launch, most_bytes: int) -> None:
        super().__init__(clock, launch)
        self.ended: Deferred[Ended] = Deferred(lambda _: self.kill())
        self._most_bytes = most_bytes
        self._written: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._is_cut = False

    def connectionMade(self) -> None:
        """Write the program's standard input, and close it."""
        super().connectionMade()
        self.transport.writeToChild(0, self._launch.stdin)
        self.transport.closeChildFD(0)

    def wrote(self, descriptor: int, data: bytes) -> None:
        """Store what the program wrote, up to the limit."""
        room = self._most_bytes - len(self._written[descriptor])
        self._written[descriptor] += data[:room]
        self._is_cut = self._is_cut or len(data) > room

    def processEnded(self, reason: Failure) -> None:
        """Fire L{ended} with the program's exit code and output."""
        super().processEnded(reason)
        if self.ended.called:
            return
        code, number = (getattr(reason.value, name, None) for name in ("exitCode", "signal"))
        stdout, stderr = (bytes(each) for each in self._written.values())
        self.ended.callback(Ended(None if number else code, self.problem, stdout, stderr, self._is_cut))


def _filled(content: bytes) -> Any:
    """Return the read end of a pipe that contains C{content}, which must fit into the pipe's buffer."""
    reading, writing = os.pipe()
    with open(writing, "wb") as end:
        end.write(content)
    return open(reading, "rb")
