"""Child processes under the reactor: a process group each, fed descriptors, perhaps a terminal, always a deadline."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
import pyte
from twisted.internet.interfaces import IProcessTransport, ITransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from tests.functional.reactor import DeadlinePassedError, IKitReactor, until

LEAD = ("/usr/bin/setsid",)
"""A child without a terminal makes itself leader of a session, so that its whole group can be ended with it."""
# What a terminal takes without showing anything, and pyte would draw in part.
_SHOWS_NOTHING = re.compile(rb"\x1b(?:\[[<=>?][0-?]*[ -/]*[@-~]|[P_^X][^\x1b]*\x1b\\)")
_BEGUN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[P_^X][^\x1b]*\x1b?)?\Z")


@attrs.frozen
class Finished:
    """How a process ended.

    :ivar exit_code: None if a signal ended it.
    :ivar stdout: with a terminal, everything that it showed.
    """

    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    seconds: float


@attrs.frozen(kw_only=True)
class Command:
    """What to run, and in what surroundings.

    :ivar environment: the whole environment; nothing is inherited.
    :ivar feeds: bytes to be read from inherited descriptors, each closed after them (a passphrase, say).
    :ivar terminal: whether the command gets a terminal of its own, with all three standard descriptors on it.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    feeds: Mapping[int, bytes] = attrs.Factory(dict)
    terminal: bool = False

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for feeds beside a terminal, which the reactor cannot give."""
        if self.terminal and self.feeds:
            raise ValueError("a command on a terminal cannot have fed descriptors")

    def behind(self, *prefix: str) -> "Command":
        """The same command as the tail of another one."""
        return attrs.evolve(self, arguments=(*prefix, *self.arguments))


class Running(ProcessProtocol):
    """A started process, its output so far, and the ways to wait for it or end it."""

    pid: int

    def __init__(self, reactor: IKitReactor, command: Command) -> None:
        self._reactor = reactor
        self.command = command
        self._out = {1: bytearray(), 2: bytearray()}
        self._seen = 0
        self._drawn = 0
        self._terminal = pyte.Screen(80, 24)  # the size that programs take who are told none
        self._stream = pyte.ByteStream(self._terminal)
        self._started = reactor.seconds()
        self._finished: Finished | None = None

    @classmethod
    def start(cls, reactor: IKitReactor, command: Command) -> "Running":
        """Start it; standard input is empty unless it has a terminal."""
        running = cls(reactor, command)
        _spawn(reactor, running)
        return running

    @property
    def is_over(self) -> bool:
        """Whether the process has ended and all of its output has come."""
        return self._finished is not None

    @property
    def output(self) -> str:
        """Standard output, or the terminal, so far."""
        return self._out[1].decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        """Standard error so far."""
        return self._out[2].decode("utf-8", "replace")

    @property
    def screen(self) -> str:
        """The lines that stand on the terminal, without the blanks at their ends.

        Programs that draw leave out what stands there already: words are to be looked for here, not in what was sent.
        """
        sent = bytes(self._out[1][self._drawn :])
        if begun := _BEGUN.search(sent):
            sent = sent[: begun.start()]
        self._drawn += len(sent)
        self._stream.feed(_SHOWS_NOTHING.sub(b"", sent))
        return "\n".join(line.rstrip() for line in self._terminal.display).rstrip()

    async def expect(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        """Wait until output that no earlier ``expect`` has passed matches ``pattern``.

        :raises DeadlinePassedError: when it does not in time, or the process ends without it.
        """
        wanted = re.compile(pattern)
        try:
            await until(self._reactor, lambda: self.is_over or self._match(wanted) is not None, seconds, repr(pattern))
        except DeadlinePassedError as late:
            raise DeadlinePassedError(f"{late} in the output of {self!r}") from None
        if (match := self._match(wanted)) is None:
            raise DeadlinePassedError(f"ended without {pattern!r}: {self!r}")
        self._seen += match.end()
        return match

    def send(self, line: str) -> None:
        """Type a line at the terminal."""
        self.press(f"{line}\n")

    def press(self, keys: str) -> None:
        """Type so many keys at the terminal, and no Enter."""
        cast(ITransport, self.transport).write(keys.encode())

    async def interrupt(self, seconds: float = 30) -> Finished:
        """Press Ctrl-C at the terminal and wait for its end."""
        self.press("\x03")
        return await self.finish(seconds)

    async def finish(self, seconds: float) -> Finished:
        """Wait for its end.

        :raises DeadlinePassedError: when it is not over in time; its whole group is killed first.
        """
        try:
            await until(self._reactor, lambda: self.is_over, seconds, "the end of a process")
        except DeadlinePassedError as late:
            await self.kill()
            raise DeadlinePassedError(f"{late}: {self!r}") from None
        assert self._finished is not None
        return self._finished

    async def signal(self, number: int = signal.SIGTERM, seconds: float = 30) -> Finished:
        """Send a signal to the process alone and wait for its end."""
        os.kill(self.pid, number)
        return await self.finish(seconds)

    async def kill(self) -> None:
        """End the process's whole group at once; harmless when it is over already."""
        if self.is_over:
            return
        kill_group(self.pid)
        # What left the group may still hold the pipes: let go of them.
        _transport(self).loseConnection()
        await until(self._reactor, lambda: self.is_over, 30, "the end of a killed process")

    def connectionMade(self) -> None:
        """Note who it is, which nobody tells of one that has ended already; feed the inherited descriptors."""
        pid = _transport(self).pid
        assert isinstance(pid, int)
        self.pid = pid
        for number, data in self.command.feeds.items():
            _transport(self).writeToChild(number, data)
            _transport(self).closeChildFD(number)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Keep what it said."""
        self._out[childFD] += data

    def processEnded(self, reason: Failure) -> None:
        """Note that it is over and all output has come."""
        seconds = self._reactor.seconds() - self._started
        self._finished = Finished(
            getattr(reason.value, "exitCode", None),
            getattr(reason.value, "signal", None),
            self.output,
            self.errors,
            seconds,
        )

    def _match(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        return wanted.search(self.output[self._seen :])

    def __repr__(self) -> str:
        said = f"stdout {self.output[-2000:]!r}, stderr {self.errors[-2000:]!r}"
        return f"<{' '.join(self.command.arguments)[:200]!r}: {said}>"


def _spawn(reactor: IKitReactor, running: Running) -> None:
    command = running.command
    environment, directory = dict(command.environment), str(command.directory)
    if command.terminal:
        arguments: tuple[str, ...] = command.arguments
        reactor.spawnProcess(running, arguments[0], arguments, environment, directory, usePTY=True)
        return
    arguments = (*LEAD, *command.arguments)
    with open(os.devnull, "rb") as nothing:
        descriptors: dict[int, int | str] = {0: nothing.fileno(), 1: "r", 2: "r"}
        descriptors.update(dict.fromkeys(command.feeds, "w"))
        reactor.spawnProcess(running, arguments[0], arguments, environment, directory, childFDs=descriptors)


def _transport(running: Running) -> IProcessTransport:
    transport = running.transport
    assert transport is not None
    return transport


def kill_group(pid: int) -> None:
    """Kill the group that ``pid`` leads, or the process alone if it has had no time to lead one."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
