"""The daemon's agent site, used with the session of the agent that this MCP server serves.

A launched agent's environment names the daemon and the session. A client without a launcher opens its own session if
the operator allows the client by name. That session ends with this process, and its token stays in memory. The client's
configuration contains only the client's name. The project's C{.aileron.toml} restricts the session, as after a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Unpack

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON
from aileron.client import (
    Connections,
    Daemon,
    DaemonAnswer,
    DaemonClient,
    DaemonError,
    DaemonUnreachable,
    Lease,
    OpenedSession,
    RequestOptions,
    SessionEnvironment,
)
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.paths import find_home
from aileron.model.errors import AileronError


def find_daemon(session: SessionEnvironment, connections: Connections) -> Daemon:
    """Return the daemon that the session names.

    If the session names no usable daemon, return one whose requests fail with the reason.
    """
    if not session.url or not session.token:
        return _unreachable(
            "AILERON_URL or AILERON_TOKEN is not set, so this program has no session of Aileron. "
            "To set a client up: aileron mcp config."
        )
    if session.ca:
        if not session.url.lower().startswith("https:"):
            return _unreachable("AILERON_CA is set, but AILERON_URL is no https address: nothing is sent in the clear.")
        try:
            connections = connections.trusting(session.ca)
        except ValueError as error:
            return _unreachable(f"The file that AILERON_CA names is no good: {error}.")
    if session.exposed_to:
        return _unreachable(
            f"AILERON_URL leads to {session.exposed_to} by plain HTTP, where others could read this session's token. "
            "It must be an https address, or, if the way there stays on this machine, AILERON_PLAIN_HOST that host."
        )
    try:
        return connections.daemon(session.url, session.token)
    except ValueError as error:
        return _unreachable(f"AILERON_URL or AILERON_TOKEN is malformed: {error}.")


@frozen
class _NoClient:
    """A client of the daemon whose every request fails with the same reason, because no daemon can be used."""

    reason: str

    async def ask(self, method: str, *path: str, **more: Unpack[RequestOptions]) -> DaemonAnswer:
        """Raise an error instead of sending the request, since no daemon can be used.

        :raises DaemonUnreachable: always.
        """
        raise DaemonUnreachable(self.reason, misdirected=True)


def _unreachable(reason: str) -> Daemon:
    return Daemon(_NoClient(reason))


_PROFILES = "profiles"
"""The feature that must be on for a project's file to count."""

_CORRECT = "correct or remove this file; no restart of this agent is needed"
_NONE_RUNS = "No Aileron daemon runs for this user."
_UNREADABLE = "This user cannot read where the Aileron daemon is: only who owns it can start a client like this."


@frozen
class OwnSession:
    """A client of the daemon with its own session, which is opened at the first request.

    If the session cannot be opened, the next request tries again. A session that was ended is not opened again, because
    ending it was intended.

    :ivar client: the client's name.
    :ivar directory: the client's working directory, as claimed to the daemon.
    :ivar find: returns the running daemon, or None if there is none.
    :ivar connect: returns a client of the agent site, given its URL and a launch key or token.
    :ivar find_restriction: returns the project's choice of actions, or None if it makes none.
    """

    client: str
    directory: str
    find: Callable[[], Discovery | None]
    connect: Callable[[str, str | None], DaemonClient]
    clock: IReactorTime
    find_restriction: Callable[[], Mapping[str, JSON] | None] = lambda: None
    _lock: DeferredLock = field(factory=DeferredLock, init=False)
    _opened: list[tuple[DaemonClient, OpenedSession, Deferred[None]]] = field(factory=list, init=False)

    async def ask(self, method: str, *path: str, **more: Unpack[RequestOptions]) -> DaemonAnswer:
        """Send one request with the session's token.

        :raises DaemonError: if no daemon runs, it does not allow this client, or the request fails.
        """
        await self._lock.run(self._open)
        client, _, _ = self._opened[0]
        return await client.ask(method, *path, **more)

    async def end(self) -> None:
        """End the session. If the daemon does not respond, the daemon ends the session when its lease expires."""
        for client, session, holding in self._opened:
            holding.cancel()
            try:
                await Daemon(client).end_session(session.id, None)
            except DaemonError:
                return

    async def _open(self) -> None:
        """If there is no open session, open one and hold its lease.

        :raises DaemonError: if no daemon runs, it does not allow this client, or the project's file is invalid.
        """
        if self._opened:
            return
        found = self._find()
        if found is None:
            raise DaemonUnreachable(_NONE_RUNS)
        restriction = self._read_restriction(found)
        daemon = Daemon(self.connect(found.url, found.launch_key))
        session = await daemon.open_session(
            self.client, self.directory, client=True, leased=True, restriction=restriction
        )
        holding = Deferred.fromCoroutine(Lease(self._with_launch_key, self.clock).hold(session.id))
        holding.addErrback(lambda failure: failure.trap(CancelledError))
        self._opened.append((self.connect(found.url, session.token), session, holding))

    def _read_restriction(self, found: Discovery) -> Mapping[str, JSON] | None:
        """Return the project's choice of actions for the request, or None if it makes none or profiles are off.

        :raises DaemonUnreachable: if the project's file is invalid.
        """
        if _PROFILES in found.features_off:
            return None
        try:
            selection = self.find_restriction()
        except AileronError as error:
            # guard of promise 2: a restriction that cannot be read opens no session
            #    -> mcp.test_own.OwnSessionTests.test_invalid_restriction, instead return None
            raise DaemonUnreachable(error.message, misdirected=True, remedy=_CORRECT) from None
        return None if selection is None else {"selection": selection}

    def _with_launch_key(self) -> Daemon | None:
        try:
            found = self._find()
        except DaemonError:
            return None
        return None if found is None else Daemon(self.connect(found.url, found.launch_key))

    def _find(self) -> Discovery | None:
        try:
            return self.find()
        except (AileronError, OSError):
            raise DaemonUnreachable(_UNREADABLE) from None


def make_own_session(
    environment: Mapping[str, str], directory: str, connections: Connections, clock: IReactorTime
) -> OwnSession | None:
    """Return a client that opens its own session, for a client program without a launcher.

    If the environment already has a session, or names no client program, return None.
    """
    result = SessionEnvironment.of(environment)
    if result.url or result.token or not result.client:
        return None

    def find_restriction() -> Mapping[str, JSON] | None:
        from aileron.home.project import find_selection

        found = find_selection(directory, environment.get("HOME") or "/")
        return None if found is None else found[1]

    return OwnSession(
        result.client,
        directory,
        lambda: live_discovery(find_home(environment)),
        connections.client,
        clock,
        find_restriction,
    )
