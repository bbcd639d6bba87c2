"""The process: composes the parts, serves one client, and is gone at once when it is told to."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.stdio import StandardIO
from twisted.logger import Logger

from aileron.client import Connections, SessionEnvironment
from aileron.values import JSON

from ._bridge import IBridge
from ._calls import Calls
from ._cards import Card
from ._link import Link
from ._nowhere import daemon_of
from ._server import ToolServer
from ._stdio import Outlet, Wire, claim_standard_streams
from ._texts import Said
from ._thread import LoopThread

_LAST_SECONDS = 0.7

_log = Logger()


@frozen
class Across:
    """The tools, as awaited from the loop: each call is made in the reactor."""

    bridge: IBridge
    calls: Calls

    async def offered(self) -> Sequence[Card]:
        """Every tool."""
        return await self.bridge.call(self.calls.offered)

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> Said:
        """Call one."""
        return await self.bridge.call(lambda: self.calls.call(tool, arguments))


class Process:
    """One client's server, from L{start} until its input ends, its output breaks, or L{stop}.

    :param reactor: not running yet, or running.
    :param streams: descriptors to read from and to write to.
    """

    def __init__(self, reactor: Any, session: SessionEnvironment, streams: tuple[int, int]) -> None:
        self._reactor = reactor
        self._streams = streams
        self._stopping = False
        self._thread = LoopThread(reactor)
        self._bridge = self._thread.bridge
        daemon = daemon_of(session, Connections(reactor))
        self._link = Link(daemon, reactor, self._changed)
        calls = Calls(daemon, self._link, reactor, session.wait_seconds, lambda: secrets.token_urlsafe(24))
        self._server = ToolServer(Across(self._bridge, calls))
        self._wire = Wire(self._bridge, self.stop)
        self._outlet = Outlet(streams[1], lambda line: reactor.callFromThread(self._wire.write_line, line))

    async def start(self) -> None:
        """Begin to serve."""
        await self._thread.start()
        self._link.start()
        readable, writable = self._streams
        # mypy takes the class for the one of Windows.
        StandardIO(self._wire, stdin=readable, stdout=writable, reactor=self._reactor)  # type: ignore[call-arg]
        self._supervise(self._bridge.ask(self._serve), then_stop=True)

    def stop(self) -> None:
        """Be gone: within a second, whatever still hangs.  Twice is safe."""
        if self._stopping:
            return
        self._stopping = True
        self._reactor.callLater(_LAST_SECONDS, os._exit, 0)
        self._link.stop()
        self._thread.stop().addBoth(lambda _: self._reactor.stop())

    async def _serve(self) -> None:
        server = self._server
        pumping = asyncio.ensure_future(self._wire.pump(self._outlet.write))
        try:
            await server.server.run(self._wire.incoming, self._wire.outgoing, server.options())
        finally:
            pumping.cancel()

    def _changed(self) -> None:
        if not self._stopping:
            self._supervise(self._bridge.ask(self._server.announce_change))

    def _supervise(self, errand: Deferred[None], *, then_stop: bool = False) -> None:
        errand.addErrback(self._failed)
        if then_stop:
            errand.addBoth(lambda _: self.stop())

    def _failed(self, failure: Any) -> None:
        if not self._stopping and not failure.check(CancelledError):
            _log.failure("the MCP server failed", failure)


def serve(environment: Mapping[str, str], stop_signals: Sequence[signal.Signals]) -> None:
    """Serve one client on standard input and output, and return when it is gone or one of C{stop_signals} came."""
    logging.basicConfig(level=logging.ERROR)
    from twisted.internet import reactor

    process = Process(reactor, SessionEnvironment.of(environment), claim_standard_streams())
    running: Any = reactor
    running.callWhenRunning(_begin, running, process, stop_signals)
    running.run(installSignalHandlers=False)


def _begin(reactor: Any, process: Process, stop_signals: Sequence[signal.Signals]) -> None:
    for number in stop_signals:
        signal.signal(number, lambda _number, _frame: reactor.callFromThread(process.stop))
    Deferred.fromCoroutine(process.start()).addErrback(_fatal, process)


def _fatal(failure: Any, process: Process) -> None:
    _log.failure("the MCP server could not start", failure)
    process.stop()
