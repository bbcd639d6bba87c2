"""The process: composes the parts, serves one client, and is gone at once when it is told to."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.shared.message import SessionMessage
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.stdio import StandardIO
from twisted.logger import Logger

from aileron.client import Connections, Daemon, SessionEnvironment

from ._agent import AgentServer
from ._bridge import LoopThread, SideGone
from ._daemon import daemon_of, own_session
from ._stdio import InputStream, JsonLines, OutputStream, claim_standard_streams

_LAST_SECONDS = 0.7

_log = Logger()


class Process:
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
        self._own = own_session(environment, os.getcwd(), connections, reactor)
        session = SessionEnvironment.of(environment)
        daemon = daemon_of(session, connections) if self._own is None else Daemon(self._own)
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
    process = Process(running, environment, streams)
    for number in stop_signals:
        signal.signal(number, lambda _number, _frame: running.callFromThread(process.stop))
    running.callWhenRunning(process.start)
    running.run(installSignalHandlers=False)
