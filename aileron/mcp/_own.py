"""A client that nobody launched: its session is opened here, if the operator let it in by name, and ends with us.

The token stays in this process.  Nothing is written, and nothing is put into the client's configuration but its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.client import (
    Answer,
    Connections,
    Daemon,
    DaemonError,
    DaemonUnreachable,
    IDaemon,
    Lease,
    OpenedSession,
    SessionEnvironment,
)
from aileron.errors import AileronError
from aileron.home import Discovery, find_home, live_discovery
from aileron.values import JSON

_NONE_RUNS = "No Aileron daemon runs for this user."
_UNREADABLE = "This user cannot read where the Aileron daemon is: only who owns it can start a client like this."


@frozen
class _Opened:
    session: OpenedSession
    daemon: Daemon
    holding: Deferred[None]


@frozen
class Opener:
    """How a session is opened.

    :ivar client: as whom.
    :ivar directory: where that works; a claim.
    :ivar find: the daemon that runs now; L{None}: none does.
    :ivar connect: the agent site, from its URL and a launch key or token.
    """

    client: str
    directory: str
    find: Callable[[], Discovery | None]
    connect: Callable[[str, str | None], Daemon]
    clock: IReactorTime

    async def open(self) -> _Opened:
        """Open it, and stand behind it.

        :raises DaemonError: there is no daemon, or it does not let this client in.
        """
        found = self._found()
        if found is None:
            raise DaemonUnreachable(_NONE_RUNS)
        daemon = self.connect(found.url, found.launch_key)
        session = await daemon.open_session(self.client, self.directory, client=True, leased=True)
        holding = Deferred.fromCoroutine(Lease(self._with_launch_key, self.clock).hold(session.id))
        holding.addErrback(lambda failure: failure.trap(CancelledError))
        return _Opened(session, self.connect(found.url, session.token), holding)

    def _with_launch_key(self) -> Daemon | None:
        try:
            found = self._found()
        except DaemonError:
            return None
        return None if found is None else self.connect(found.url, found.launch_key)

    def _found(self) -> Discovery | None:
        try:
            return self.find()
        except (AileronError, OSError):
            raise DaemonUnreachable(_UNREADABLE) from None


@implementer(IDaemon)
@frozen
class OwnSession:
    """The daemon in a session of our own, which is opened when it is first asked for anything.

    Where it could not be opened, the next request tries again; one that was ended stays so: whoever ended it meant it.
    """

    _opener: Opener
    _lock: DeferredLock = field(factory=DeferredLock, init=False)
    _opened: list[_Opened] = field(factory=list, init=False)

    async def end(self) -> None:
        """End it, as far as the daemon answers; the daemon ends it otherwise, once nobody stands behind it."""
        for opened in self._opened:
            opened.holding.cancel()
            try:
                await opened.daemon.end_session(opened.session.id, None)
            except DaemonError:
                return

    async def status(self) -> Mapping[str, Any]:
        """See L{IDaemon}."""
        return await (await self._daemon()).status()

    async def actions(self, generation: int | None, wait_seconds: float) -> Mapping[str, Any]:
        """See L{IDaemon}."""
        return await (await self._daemon()).actions(generation, wait_seconds)

    async def run(self, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float) -> Answer:
        """See L{IDaemon}."""
        return await (await self._daemon()).run(name, arguments, idempotency_key, wait_seconds)

    async def result(self, run_id: str, wait_seconds: float) -> Mapping[str, Any]:
        """See L{IDaemon}."""
        return await (await self._daemon()).result(run_id, wait_seconds)

    async def run_status(self, run_id: str, wait_seconds: float) -> Mapping[str, Any]:
        """See L{IDaemon}."""
        return await (await self._daemon()).run_status(run_id, wait_seconds)

    async def withdraw(self, run_id: str, reason: str | None) -> Mapping[str, Any]:
        """See L{IDaemon}."""
        return await (await self._daemon()).withdraw(run_id, reason)

    async def most_used(self, limit: int) -> Sequence[str]:
        """See L{IDaemon}."""
        return await (await self._daemon()).most_used(limit)

    async def runs(self, limit: int) -> Mapping[str, Any]:
        """See L{IDaemon}."""
        return await (await self._daemon()).runs(limit)

    async def _daemon(self) -> Daemon:
        return (await self._lock.run(self._open)).daemon

    async def _open(self) -> _Opened:
        if not self._opened:
            self._opened.append(await self._opener.open())
        return self._opened[0]


def own_session(
    environment: Mapping[str, str], directory: str, connections: Connections, clock: IReactorTime
) -> OwnSession | None:
    """The session that a client in such an environment may open for itself; L{None}: it has one, or is not named."""
    result = SessionEnvironment.of(environment)
    if result.url or result.token or not result.client:
        return None
    return OwnSession(
        Opener(result.client, directory, lambda: live_discovery(find_home(environment)), connections.daemon, clock)
    )
