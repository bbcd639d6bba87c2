"""The server of one client on standard input and output: lines of the reactor's, messages of the SDK's."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import mcp.types as t
from mcp.shared.message import SessionMessage
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import connectionDone
from twisted.internet.stdio import StandardIO
from twisted.logger import Logger
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.bridge import LoopThread, SideGone
from aileron.client import Connections, Daemon, SessionEnvironment

from ._agent import AgentServer
from ._daemon import find_daemon, make_own_session

MAX_LINE_BYTES = 8 * 1024 * 1024


def claim_standard_streams() -> tuple[int, int]:
    """Take the client's two streams away from descriptors 0 and 1, so that a stray print cannot break the protocol.

    :return: private descriptors to read from and to write to.
    :raises OSError: one of them is closed.
    """
    readable = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    writable = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return readable, writable


class _Stream:
    """The part of a stream that the SDK asks for beside reading or writing. When one ends is for the process to say."""

    async def aclose(self) -> None:
        """Note that the SDK needs it no more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class InputStream(_Stream):
    """The stream of messages, in order, that the SDK reads from in the loop.  A wait takes one turn of the loop."""

    def __init__(self) -> None:
        # Unbounded, since the client cannot be made to wait; it waits for answers by itself.
        self._queue: asyncio.Queue[SessionMessage | Exception] = asyncio.Queue()

    def put(self, message: SessionMessage | Exception) -> None:
        """Add one."""
        self._queue.put_nowait(message)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next one, as soon as there is one."""
        return await self._queue.get()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._queue.get()


class OutputStream(_Stream):
    """The stream that the SDK writes to in the loop: each message is a line.

    :param write_line: takes a line to the reactor, and does not wait for it: no cancellation can fall between an answer
        and its line.
    """

    def __init__(self, write_line: Callable[[bytes], object]) -> None:
        self._write_line = write_line

    async def send(self, sent: SessionMessage) -> None:
        """Write one message."""
        self._write_line(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())


@implementer(IHalfCloseableProtocol)
class JsonLines(LineOnlyReceiver):
    """Reads and writes JSON lines by the reactor's transport.

    :param received: called with each message, or with why a line is none.
    :param ended: called once, when either direction has ended.
    """

    delimiter = b"\n"
    MAX_LENGTH = MAX_LINE_BYTES

    def __init__(self, received: Callable[[SessionMessage | Exception], object], ended: Callable[[], object]) -> None:
        self._received = received
        self._ended: Callable[[], object] | None = ended

    def lineReceived(self, line: bytes) -> None:
        """Hand over one message."""
        if line.strip() and self._ended is not None:
            self._received(_parse_line(line))

    def lineLengthExceeded(self, line: bytes) -> None:
        """Give up at a line without an end: nothing that follows can be read."""
        self._end()

    def readConnectionLost(self) -> None:
        """Note that standard input ended: the client is done."""
        self._end()

    def writeConnectionLost(self) -> None:
        """Note that standard output broke: the client is gone."""
        self._end()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note that both are gone."""
        self._end()

    def write_line(self, line: bytes) -> None:
        """Write one line, if there is still somebody who reads."""
        if self.transport is not None and self._ended is not None:
            self.transport.write(line + b"\n")

    def close(self) -> None:
        """Read and write nothing any more: that a call is given up says nothing of what becomes of its run."""
        self._ended = None

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


def _parse_line(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(t.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as malformed:
        return malformed


_LAST_SECONDS = 0.7

_log = Logger()


class StdioProcess:
    """One client's server, from L{start} until its input ends, its output breaks, or L{stop}.

    The reactor has the client's two streams; the SDK runs in a thread.

    :param environment: names the daemon and the session, or the client whose session is to be opened.
    :param streams: descriptors to read from and to write to.
    """

    def __init__(self, reactor: Any, environment: Mapping[str, str], streams: tuple[int, int]) -> None:
        self._reactor = reactor
        self._streams = streams
        self._stopping = False
        self._thread = LoopThread(reactor)
        connections = Connections(reactor)
        self._own = make_own_session(environment, os.getcwd(), connections, reactor)
        session = SessionEnvironment.of(environment)
        daemon = find_daemon(session, connections) if self._own is None else Daemon(self._own)
        self._agent = AgentServer(reactor, self._thread.bridge, session, daemon)
        self._input = InputStream()
        self._lines = JsonLines(self._receive, self.stop)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start().addCallback(lambda _: self._open()).addErrback(self._fail)

    def stop(self) -> None:
        """Be gone: within a second, whatever still hangs.  Twice is safe."""
        if self._stopping:
            return
        self._stopping = True
        self._reactor.callLater(_LAST_SECONDS, os._exit, 0)
        self._lines.close()
        self._agent.stop()
        leaving = [self._thread.stop()]
        if self._own is not None:
            leaving.append(Deferred.fromCoroutine(self._own.end()))
        DeferredList(leaving, consumeErrors=True).addBoth(lambda _: self._reactor.stop())

    def _open(self) -> None:
        if self._stopping:
            return
        self._agent.start()
        readable, writable = self._streams
        # mypy takes the class for the one of Windows.
        StandardIO(self._lines, stdin=readable, stdout=writable, reactor=self._reactor)  # type: ignore[call-arg]
        self._agent.supervise(self._thread.bridge.ask(self._serve), self.stop)

    def _receive(self, message: SessionMessage | Exception) -> None:
        with contextlib.suppress(SideGone):
            self._thread.bridge.post(lambda: self._input.put(message))

    async def _serve(self) -> None:
        server = self._agent.server
        output = OutputStream(lambda line: self._reactor.callFromThread(self._lines.write_line, line))
        await server.run(self._input, output, server.create_initialization_options())

    def _fail(self, failure: Any) -> None:
        _log.failure("the MCP server could not start", failure)
        self.stop()


def serve(environment: Mapping[str, str], stop_signals: Sequence[signal.Signals]) -> None:
    """Serve one client on standard input and output, and return when it is gone or one of C{stop_signals} came.

    Where one of the two is closed there is no client.
    """
    logging.basicConfig(level=logging.ERROR)
    try:
        streams = claim_standard_streams()  # first of all: a closed one's number would be taken for something else
    except OSError:
        return
    from twisted.internet import reactor

    running: Any = reactor
    process = StdioProcess(running, environment, streams)

    def take_signals() -> None:
        for number in stop_signals:
            signal.signal(number, lambda _number, _frame: running.callFromThread(process.stop))

    # Of the reactor's own handlers we want the descriptor that wakes it: a signal just before it waits is not missed.
    running.callWhenRunning(take_signals)
    running.callWhenRunning(process.start)
    running.run()
