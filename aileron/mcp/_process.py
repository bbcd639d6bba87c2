"""The process: composes the parts, serves one client, and is gone at once when it is told to."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.stdio import StandardIO
from twisted.logger import Logger

from aileron.client import Connections, SessionEnvironment

from ._agent import AgentServer
from ._oneloop import OneLoop, install
from ._own import own_session
from ._stdio import Outlet, Wire, claim_standard_streams

_LAST_SECONDS = 0.7

_log = Logger()


class Process:
    """One client's server, from L{start} until its input ends, its output breaks, or L{stop}.

    :param loop: not running yet, or running.
    :param environment: names the daemon and the session, or the client whose session is to be opened.
    :param streams: descriptors to read from and to write to.
    """

    def __init__(self, loop: OneLoop, environment: Mapping[str, str], streams: tuple[int, int]) -> None:
        self._reactor = reactor = loop.reactor
        self._streams = streams
        self._stopping = False
        self._loop = loop
        connections = Connections(reactor)
        self._own = own_session(environment, os.getcwd(), connections, reactor)
        session = SessionEnvironment.of(environment)
        self._agent = AgentServer(reactor, loop.bridge, session, connections, own=self._own)
        self._wire = Wire(self.stop)
        self._outlet = Outlet(streams[1], self._wire.write_line)

    def start(self) -> None:
        """Begin to serve."""
        self._agent.start()
        readable, writable = self._streams
        # mypy takes the class for the one of Windows.
        StandardIO(self._wire, stdin=readable, stdout=writable, reactor=self._reactor)  # type: ignore[call-arg]
        self._agent.supervise(self._loop.bridge.ask(self._serve), self.stop)

    def stop(self) -> None:
        """Be gone: within a second, whatever still hangs.  Twice is safe."""
        if self._stopping:
            return
        self._stopping = True
        self._reactor.callLater(_LAST_SECONDS, os._exit, 0)
        self._outlet.close()
        self._agent.stop()
        leaving = [self._loop.empty()]
        if self._own is not None:
            leaving.append(Deferred.fromCoroutine(self._own.end()))
        DeferredList(leaving, consumeErrors=True).addBoth(lambda _: self._reactor.stop())

    async def _serve(self) -> None:
        server = self._agent.server
        await server.run(self._wire.inbox, self._outlet, server.create_initialization_options())


def serve(environment: Mapping[str, str], stop_signals: Sequence[signal.Signals]) -> None:
    """Serve one client on standard input and output, and return when it is gone or one of C{stop_signals} came.

    Where one of the two is closed there is no client.
    """
    logging.basicConfig(level=logging.ERROR)
    try:
        streams = claim_standard_streams()  # first of all: a closed one's number would be taken for something else
    except OSError:
        return
    loop = install()
    process = Process(loop, environment, streams)
    loop.soon(lambda: _begin(loop.reactor, process, stop_signals))
    loop.reactor.run(installSignalHandlers=False)


def _begin(reactor: Any, process: Process, stop_signals: Sequence[signal.Signals]) -> None:
    for number in stop_signals:
        signal.signal(number, lambda _number, _frame: reactor.callFromThread(process.stop))
    try:
        process.start()
    except Exception:  # noqa: BLE001 - the rim: whatever it was, nothing is served
        _log.failure("the MCP server could not start")
        process.stop()
