"""The shared process of a local MCP server: started on demand, restarted after a failure, and ended when unused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from math import ceil
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredLock, gatherResults
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from aileron.base.waiting import Waiting, uncancelled
from aileron.connectors._conversation import Rejected
from aileron.connectors._decode import show_safely
from aileron.connectors._sending import FAILURES
from aileron.connectors.programs import Confinement, Launch
from aileron.model.errors import NetworkError
from aileron.model.interfaces.vault import ICredential
from aileron.redaction import Redactor

from ._api_relay import ApiRelay
from ._package import InstalledPackage, TreeChanged
from ._process import ErrorLog, ServerProcess
from ._session import McpSession
from ._wire import Bridged, Wire

START_SECONDS = 60.0
"""How long a process may take to start until it answers."""

IDLE_SECONDS = 300.0
"""How long a process is kept running while no run uses it."""

MOST_DELAY_SECONDS = 60.0
_SETTLED_SECONDS = 60.0

InThread = Callable[[Callable[[], None]], Deferred[None]]
Begin = Callable[[Wire], Coroutine[Any, Any, McpSession]]

_log = Logger()


@frozen
class Start:
    """The way a process is started. A process that was started differently is replaced.

    :ivar most_bytes: the size limit of a message from the server.
    :ivar secrets: the secrets to redact in the server's standard error.
    :ivar relay: passes the server's requests on to its API, or None if the server has no API.
    :ivar listen: listens for these requests inside the sandbox.
    :ivar credential: the credential of the calls for which these requests are passed on. A process serves one account
        only, since the process may remember the account's data.
    :ivar package: the package whose files are checked before the start, or None if there is none.
    """

    launch: Launch
    most_bytes: int
    secrets: tuple[str, ...] = field(repr=False)
    relay: ApiRelay | None = None
    listen: Callable[[Any], Any] | None = field(default=None, repr=False)
    credential: ICredential | None = field(default=None, repr=False)
    package: InstalledPackage | None = None


@define(eq=False)
class _Running:
    """A process, from its start to its end.

    :ivar confinement: the sandbox of the process.
    :ivar session: the session with the process, or None until it has started.
    :ivar users: the number of runs that use the session.
    :ivar is_forgotten: whether further runs must not use the process.
    :ivar is_dismissed: whether the process is ending because it is no longer needed.
    :ivar why: the reason why the process has ended, or an empty text.
    """

    start: Start
    since: float
    confinement: Confinement | None
    process: ServerProcess = field(init=False)
    session: Any = None
    users: int = 0
    is_forgotten: bool = False
    is_dismissed: bool = False
    why: str = ""

    def suits(self, start: Start) -> bool:
        """Return True if the process was started with C{start} and its sandbox is still up to date."""
        return self.start == start and (self.confinement is None or self.confinement.is_current())


@define(eq=False)
class SharedServer:
    """The process of one connector's local MCP server. It is replaced if the connector's file or credential changes.

    :ivar name: the name of the connector.
    :ivar reactor: starts processes and provides the clock.
    :ivar begin: starts a session over a connection to the process.
    :ivar in_thread: calls a function in another thread.
    """

    name: str
    reactor: Any = field(repr=False)
    begin: Begin = field(repr=False)
    in_thread: InThread = field(repr=False)
    _turn: DeferredLock = field(init=False, factory=DeferredLock)
    _running: _Running | None = field(init=False, default=None)
    _changed: Waiting = field(init=False, factory=Waiting)
    _idle: IDelayedCall | None = field(init=False, default=None)
    _failures: int = field(init=False, default=0)
    _not_before: float = field(init=False, default=0.0)

    async def open(self, start: Start) -> McpSession:
        """Return the session with a process that was started with C{start}. Release the session by L{done}.

        If cancelled while waiting for another call of this method, start no process. If cancelled later, a process that
        is being started is kept.

        :raises NetworkError: if the process does not start, was started too recently, or its files have changed.
        """
        await self._turn.acquire()
        opening = Deferred.fromCoroutine(self._ready(start))
        try:
            running = await uncancelled(opening)
            session: McpSession = running.session
            if running.users == 0:
                session.refused.clear()  # the list covers the runs that are in progress
            running.users += 1
            self._stop_waiting()
            return session
        finally:
            opening.addBoth(lambda _: self._turn.release())

    def done(self, session: McpSession) -> None:
        """Release the session of one run. A process that should be replaced ends when no run uses it."""
        running = self._running
        if running is not None and running.session is session:
            running.users -= 1
            self._look_at_users(running)

    def forget_credential(self) -> None:
        """If the server's process was given a credential, end the process as soon as no run uses it."""
        running = self._running
        if running is not None and running.start.secrets:
            running.is_forgotten = True
            self._look_at_users(running)

    async def stop(self) -> None:
        """End the process, and wait until the process and its children have ended."""
        if self._running is not None:
            await self._dismiss(self._running, "is not needed any more")

    async def _ready(self, start: Start) -> _Running:
        running = self._running
        while running is not None and (running.is_dismissed or running.is_forgotten or not running.suits(start)):
            if running.users == 0 or running.is_dismissed:
                await self._dismiss(running, "was started in another way than now")
            else:  # runs in progress finish with the old process
                await self._changed.wait(over=False)
            running = self._running
        return running or await self._start(start)

    async def _start(self, start: Start) -> _Running:
        seconds = self._not_before - self.reactor.seconds()
        if seconds > 0:
            raise NetworkError(f"The server of {self.name} has ended, and is started again in {ceil(seconds)} s.")
        await self._check(start)
        launch, relay = await start.launch.confine(), start.relay
        running = _Running(start, self.reactor.seconds(), launch.confinement)
        hide = bytes if relay is None else relay.hide
        self._running = running
        try:
            if relay is not None:
                launch = relay.open(self.reactor, launch, listen=start.listen, credential=start.credential)
            running.process = ServerProcess(
                self.reactor,
                launch,
                errors=ErrorLog(self.reactor, self.name, Redactor.of(*start.secrets), hide),
                ended=lambda why: self._ended(running, why),
                most_bytes=start.most_bytes,
                hide=hide,
            )
            running.process.start(self.reactor)
        except OSError as error:
            self._ended(running, f"was not started: {error.strerror or type(error).__name__}")
        else:
            await self._greet(running)
        if running.why:
            raise NetworkError(f"The server of {self.name} {running.why}; its errors are in Aileron's log.")
        self._look_at_users(running)
        return running

    async def _check(self, start: Start) -> None:
        """If the server runs from an installed package, check the files of the package.

        :raises NetworkError: if the check fails; the server was not started.
        """
        if start.package is None:
            return
        try:
            await self.in_thread(partial(start.package.check, start.launch.environment.get("HOME")))
        except TreeChanged as changed:
            raise NetworkError(f"The server of {self.name} was not started: {changed}") from None

    async def _greet(self, running: _Running) -> None:
        """Start the session. If that fails, end the process and wait until it has ended."""
        try:
            beginning = Deferred.fromCoroutine(self.begin(running.process))
            running.session = await beginning.addTimeout(START_SECONDS, self.reactor)
        except Overdue:
            why = f"did not answer within {START_SECONDS:g} seconds"
        except Rejected as error:
            said = Redactor.of(*running.start.secrets).text(error.text)
            why = f"refused a session: {show_safely(said)}"
        except FAILURES:
            why = ""
        except Exception:  # noqa: BLE001 - the process must end after any failure of the SDK
            _log.failure("the session with the server of {connector} could not be started", connector=self.name)
            why = "was asked for a session, which failed"
        else:
            return
        running.process.end(why)
        await self._changed.wait(over=self._running is not running)
        if not running.why:
            running.why = why

    def _ended(self, running: _Running, why: str) -> None:
        """Log the end of a process, and record its reason and the earliest time of the next start."""
        running.why, now = why, self.reactor.seconds()
        if running.start.relay is not None:
            running.start.relay.close()
        if not running.is_dismissed:
            _log.warn("the server of {connector} {why}", connector=self.name, why=why)
            self._failures = 1 if now - running.since >= _SETTLED_SECONDS else self._failures + 1
            self._not_before = now + min(2.0 ** (self._failures - 1), MOST_DELAY_SECONDS)
        self._running = None
        self._stop_waiting()
        self._changed.fire()

    async def _dismiss(self, running: _Running, why: str) -> None:
        running.is_dismissed = True
        running.process.end(why)
        while self._running is running:
            await self._changed.wait(over=False)

    def _look_at_users(self, running: _Running) -> None:
        if running.users == 0:
            self._changed.fire()
            self._stop_waiting()
            if running.is_forgotten:
                self._end_unused(running, "was ended, because the vault is locked")
            else:
                self._idle = self.reactor.callLater(IDLE_SECONDS, self._end_unused, running, "was not used")

    def _end_unused(self, running: _Running, why: str) -> None:
        running.is_dismissed = True
        running.process.end(why)

    def _stop_waiting(self) -> None:
        if self._idle is not None and self._idle.active():
            self._idle.cancel()
        self._idle = None


@define(eq=False)
class LocalServers:
    """The processes of all local servers, by the names of their connectors."""

    reactor: Any = field(repr=False)
    bridged: Bridged = field(repr=False)
    in_thread: InThread = field(repr=False)
    _servers: dict[str, SharedServer] = field(init=False, factory=dict)

    def of(self, name: str) -> SharedServer:
        """Return the shared server of one connector, always the same object."""
        if name not in self._servers:
            self._servers[name] = SharedServer(name, self.reactor, self._begin, self.in_thread)
        return self._servers[name]

    def forget_credentials(self) -> None:
        """End each process that was given a credential, as soon as no run uses it."""
        for each in self._servers.values():
            each.forget_credential()

    async def stop(self) -> None:
        """End all processes and wait until they and their children have ended."""
        await gatherResults([Deferred.fromCoroutine(each.stop()) for each in self._servers.values()])

    async def _begin(self, wire: Wire) -> McpSession:
        session = McpSession(await self.bridged(), wire)
        await session.start()
        return session
