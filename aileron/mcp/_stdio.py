"""The server of one client on standard input and output, which loads the SDK when the client needs it."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.stdio import StandardIO
from twisted.logger import Logger

from aileron.base.bridge import LoopThread
from aileron.client import Connections, Daemon, SessionEnvironment

from ._daemon import find_daemon, make_own_session
from ._early import EarlyAnswers
from ._lines import JsonLines
from ._opening import Opening
from .offering.tools import ToolListing

if TYPE_CHECKING:
    from ._streams import StreamServer

LOAD_AFTER_SECONDS = 1.0
"""The seconds between the list of tools and loading the SDK for an idle client, so that its first call is fast."""

_LAST_SECONDS = 0.7

_log = Logger()


class StdioProcess:
    """The MCP server of one client on standard streams, from L{start} until its input ends or L{stop} is called.

    It also ends if its output breaks. The reactor owns the client's two streams. The SDK is loaded in a thread and runs
    there.

    :param environment: the environment variables that name the daemon and the session, or the client program.
    :param streams: descriptors to read from and to write to.
    :param opening: the state of the client's first messages.
    """

    def __init__(
        self, reactor: Any, environment: Mapping[str, str], streams: tuple[int, int], opening: Opening
    ) -> None:
        self._reactor = reactor
        self._streams = streams
        self._opening = opening
        self._stopping = self._loading = False
        self._thread = LoopThread(reactor)
        connections = Connections(reactor)
        self._own = make_own_session(environment, os.getcwd(), connections, reactor)
        self._session = SessionEnvironment.of(environment)
        self._daemon = find_daemon(self._session, connections) if self._own is None else Daemon(self._own)
        self._listing = ToolListing.make(self._daemon, self._session, reactor)
        self._lines = JsonLines(self._receive, self.stop)
        self._early = EarlyAnswers(opening, self._listing, self._session, self._lines.write_line, self._plan_load)
        self._server: StreamServer | None = None

    def start(self, rest: bytes) -> None:
        """Start serving.

        :param rest: bytes already read but not processed.
        """
        if self._stopping:
            return
        self._listing.link.start()
        readable, writable = self._streams
        # mypy checks the arguments of the Windows class.
        StandardIO(self._lines, stdin=readable, stdout=writable, reactor=self._reactor)  # type: ignore[call-arg]
        if self._opening.over:
            self._load()
        self._lines.dataReceived(rest)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Stop within a second, even if something hangs. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        self._reactor.callLater(_LAST_SECONDS, os._exit, 0)
        self._lines.close()
        self._early.stop()
        self._listing.link.stop()
        if self._server is not None:
            self._server.stop()
        leaving = [self._thread.stop()]
        if self._own is not None:
            leaving.append(Deferred.fromCoroutine(self._own.end()))
        DeferredList(leaving, consumeErrors=True).addBoth(lambda _: self._reactor.stop())

    def _receive(self, line: bytes) -> None:
        if self._server is not None:
            self._server.receive(line)
        elif self._loading:
            self._opening.lines.append(line)
        else:
            self._early.receive(line)

    def _plan_load(self) -> None:
        if self._opening.over:
            self._load()
        elif not self._loading:
            self._reactor.callLater(LOAD_AFTER_SECONDS, self._load)

    def _load(self) -> None:
        """Load the SDK in a thread, and then serve the client with it. Idempotent."""
        if self._loading or self._stopping:
            return
        self._loading = True
        loaded = self._thread.start().addCallback(lambda _: self._thread.bridge.ask(_load_sdk))
        loaded.addCallback(self._serve).addErrback(self._fail)

    def _serve(self, make: Callable[..., StreamServer]) -> None:
        if self._stopping:
            return
        bridge, write_line = self._thread.bridge, self._lines.write_line
        server = make(self._reactor, bridge, self._session, self._daemon, self._listing, write_line, self._opening)
        server.start(self.stop)
        self._server = server
        for line in self._opening.lines:
            server.receive(line)
        self._opening.lines.clear()
        if self._early.outdated:
            server.announce_missed_change()

    def _fail(self, failure: Any) -> None:
        if not self._stopping:
            _log.failure("the MCP server could not start", failure)
            self.stop()


async def _load_sdk() -> Callable[..., StreamServer]:
    """Import the SDK, and return the function that makes the server. Call it in the thread of the asyncio loop."""
    gc.disable()  # collections while loading find no garbage
    try:
        from ._streams import make_server
    finally:
        gc.freeze()
        gc.enable()
    return make_server


def serve(
    environment: Mapping[str, str],
    stop_signals: Sequence[signal.Signals],
    streams: tuple[int, int],
    opening: Opening,
    rest: bytes,
) -> None:
    """Serve one client until it disconnects or one of C{stop_signals} arrives.

    :param streams: descriptors of the client's input and output.
    :param opening: the state of the client's first messages.
    :param rest: bytes already read but not processed.
    """
    logging.basicConfig(level=logging.ERROR)
    from twisted.internet import reactor

    running: Any = reactor
    process = StdioProcess(running, environment, streams, opening)

    def take_signals() -> None:
        for number in stop_signals:
            signal.signal(number, lambda _number, _frame: running.callFromThread(process.stop))

    # Replace the handlers after the reactor installed its own. Its wake-up descriptor stays and wakes it at a signal.
    running.callWhenRunning(take_signals)
    running.callWhenRunning(process.start, rest)
    running.run()
