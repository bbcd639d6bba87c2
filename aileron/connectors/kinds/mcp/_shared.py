"""Keeps the one process of a local MCP server: started when it is needed, shared, started again, and ended."""

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
"""How long a process may take until it answers: as long as nobody waits for it, it goes on."""

IDLE_SECONDS = 300.0
"""How long a process stays that no run uses."""

MOST_DELAY_SECONDS = 60.0
_SETTLED_SECONDS = 60.0

InThread = Callable[[Callable[[], None]], Deferred[None]]
Begin = Callable[[Wire], Coroutine[Any, Any, McpSession]]

_log = Logger()


@frozen
class Start:
    """The way in which a process is started; one that was started in another way is not used.

    :ivar most_bytes: of a message that it writes.
    :ivar secrets: that its errors must not show.
    :ivar relay: passes its requests on, where it has an API; C{listen} listens for them inside of its sandbox, and
        only calls with this C{credential} let them pass: what it has learnt of one account is not for another.
    :ivar package: whose files must be those that were installed; None: it is of the machine.
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
    """A process from its start until it is gone.

    :ivar confinement: its sandbox.
    :ivar session: with it, once that has begun.
    :ivar users: how many runs use it.
    :ivar is_forgotten: whether no further run gets it.
    :ivar is_dismissed: whether it ends because it is not wanted any more.
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
        """Return whether it was started in this way, and what its sandbox protects is still in its place."""
        return self.start == start and (self.confinement is None or self.confinement.is_current())


@define(eq=False)
class SharedServer:
    """The process of one connector, whatever its file and its credential say at the time.

    :ivar name: the connector's.
    :ivar reactor: starts processes, and has the clock.
    :ivar begin: begins a session on a wire.
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
        """Return the session with a process that was started like this; to be given back by L{done}.

        Who gives up while others have their turn starts nothing; a process that starts goes on starting.

        :raises NetworkError: there is none.
        """
        await self._turn.acquire()
        opening = Deferred.fromCoroutine(self._ready(start))
        try:
            running = await uncancelled(opening)
            session: McpSession = running.session
            if running.users == 0:
                session.refused.clear()  # they are told of the runs that are under way
            running.users += 1
            self._stop_waiting()
            return session
        finally:
            opening.addBoth(lambda _: self._turn.release())

    def done(self, session: McpSession) -> None:
        """Take the session back from one run."""
        running = self._running
        if running is not None and running.session is session:
            running.users -= 1
            self._look_at_users(running)

    def forget_credential(self) -> None:
        """End a process that has a credential, as soon as no run uses it."""
        running = self._running
        if running is not None and running.start.secrets:
            running.is_forgotten = True
            self._look_at_users(running)

    async def stop(self) -> None:
        """End the process, and wait until it and what it has started are gone."""
        if self._running is not None:
            await self._dismiss(self._running, "is not needed any more")

    async def _ready(self, start: Start) -> _Running:
        running = self._running
        while running is not None and (running.is_dismissed or running.is_forgotten or not running.suits(start)):
            if running.users == 0 or running.is_dismissed:
                await self._dismiss(running, "was started in another way than now")
            else:  # what runs has begun before the change, and ends as it began
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
        """Pass only if the code of the server is that of the package as it was installed, where it has one.

        :raises NetworkError: it is not; nothing was started.
        """
        if start.package is None:
            return
        try:
            await self.in_thread(partial(start.package.check, start.launch.environment.get("HOME")))
        except TreeChanged as changed:
            raise NetworkError(f"The server of {self.name} was not started: {changed}") from None

    async def _greet(self, running: _Running) -> None:
        """Begin the session; where that fails, wait until the process is gone."""
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
        except Exception:  # noqa: BLE001 - whatever breaks in the SDK, the process does not stay
            _log.failure("no session began with the server of {connector}", connector=self.name)
            why = "was asked for a session, which failed"
        else:
            return
        running.process.end(why)
        await self._changed.wait(over=self._running is not running)
        if not running.why:
            running.why = why

    def _ended(self, running: _Running, why: str) -> None:
        """Note that a process is gone, and when the next one may be started."""
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
        """Return that of one connector, always the same."""
        if name not in self._servers:
            self._servers[name] = SharedServer(name, self.reactor, self._begin, self.in_thread)
        return self._servers[name]

    def forget_credentials(self) -> None:
        """End those that have a credential, each as soon as no run uses it."""
        for each in self._servers.values():
            each.forget_credential()

    async def stop(self) -> None:
        """End all of them."""
        await gatherResults([Deferred.fromCoroutine(each.stop()) for each in self._servers.values()])

    async def _begin(self, wire: Wire) -> McpSession:
        session = McpSession(await self.bridged(), wire)
        await session.start()
        return session
