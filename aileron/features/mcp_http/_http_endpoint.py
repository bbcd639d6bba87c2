"""Serves MCP over HTTP: one MCP server for each agent, all in one asyncio loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any, Protocol

from attrs import evolve
from mcp.server.request_state import RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer

from aileron.base.bridge import SideGone, ThreadBridge
from aileron.client import LONGEST_WAIT_SECONDS, Daemon, InProcessClient, SessionEnvironment
from aileron.mcp.agent import AgentServer
from aileron.mcp.request_ids import refuse_unusable_id
from aileron.model.errors import InternalError, LimitExceeded
from aileron.model.interfaces.services import IAgentRoutes

from ._asgi import Receive, Send, exchange_request
from .values import IMcp, McpReply, McpRequest, McpSettings

MOST_UNDER_WAY = 32
"""The most requests, and the most calls, of one agent at once. Those of disconnected clients count too."""

_MOST_BODY_BYTES = 1024 * 1024  # the same limit as the agent site's


class SessionServer:
    """The MCP server of one agent. It closes when the agent has been idle for the configured time.

    :param served: the server that answers this agent. It is started and stopped with this object.
    :param closed: called when the server closes.
    """

    def __init__(
        self,
        reactor: Any,
        bridge: ThreadBridge,
        settings: McpSettings,
        served: AgentServer,
        closed: Callable[[], object],
    ) -> None:
        self._reactor, self._bridge, self._closed = reactor, bridge, closed
        self._idle_seconds = settings.idle_seconds
        self._served = served
        self._sessions = StreamableHTTPSessionManager(
            served.server,
            session_idle_timeout=settings.idle_seconds,
            max_sessions=settings.sessions,
            max_request_body_size=_MOST_BODY_BYTES,
        )
        self._ready, self._leave = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._under_way = 0
        self._over = False
        self._idle: IDelayedCall | None = None

    def open(self) -> None:
        """Start to serve this agent over MCP."""
        self._served.start()
        self._served.supervise(self._bridge.ask(self._run), self.close)

    def close(self) -> None:
        """Stop the server and cancel its requests under way. Idempotent."""
        if self._over:
            return
        self._over = True
        self._busy()
        self._served.stop()
        self._closed()
        with contextlib.suppress(SideGone):
            self._bridge.post(self._leave.set)

    async def serve(self, request: McpRequest) -> McpReply:
        """Answer one request of the agent. A request whose ID cannot be used is answered with status 400.

        :raises LimitExceeded: if the agent has too many requests under way.
        :raises InternalError: if the server failed, or the daemon is stopping.
        """
        refusal = refuse_unusable_id(request.body)
        if refusal is not None:
            return McpReply(400, {"content-type": "application/json"}, _make_body(refusal), lambda: None)
        if self._under_way >= MOST_UNDER_WAY:
            raise LimitExceeded("This agent has too many requests of MCP under way.", {"retry_after": 1})
        self._under_way += 1
        self._busy()
        try:
            reply = await exchange_request(self._bridge, self._answer, request)
        except BaseException:
            self._answered()
            raise
        return evolve(reply, close=_make_once(reply.close, self._answered))

    def _busy(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None and idle.active():
            idle.cancel()

    def _answered(self) -> None:
        self._under_way -= 1
        if not self._under_way and not self._over:
            self._idle = self._reactor.callLater(self._idle_seconds, self.close)

    async def _run(self) -> None:
        try:
            async with self._sessions.run():
                self._ready.set()
                await self._leave.wait()
        finally:
            for task in filter(None, self._tasks):
                task.cancel()

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._ready.wait()
            await self._sessions.handle_request(scope, receive, send)
        finally:
            self._tasks.discard(task)


async def _make_body(whole: bytes) -> AsyncIterator[bytes]:
    yield whole


def _make_once(*acts: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls all of C{acts} at its first call and does nothing later."""
    left = list(acts)

    def call() -> None:
        while left:
            left.pop(0)()

    return call


MOST_AGENTS = 64
_KEY_BYTES = 32


class ILoop(Protocol):
    """An asyncio loop in a thread of its own."""

    @property
    def bridge(self) -> ThreadBridge:
        """The bridge between the loop and the reactor."""

    def start(self) -> Deferred[None]:
        """Start the loop. The Deferred fires when it runs."""

    def stop(self) -> Deferred[None]:
        """Stop the loop. The Deferred fires when it has stopped."""


def sealing_for(session_id: str, key: bytes) -> RequestStateSecurity:
    """Return the protection of the request states that an agent's client stores and sends back.

    A state that was issued to another agent is rejected.

    :param key: the secret of the seal, at least 32 bytes.
    """
    return RequestStateSecurity(keys=[key], ttl=LONGEST_WAIT_SECONDS, bind_principal=lambda _ctx: session_id)


@implementer(IMcp)
class HttpEndpoint:
    """The endpoint C{/mcp}. Each agent has a server of its own, which is created at the agent's first request.

    A server acts only through the agent site's routes, with the token of its agent.

    :param reactor: provides time.
    :param loop: a loop that has not been started.
    """

    def __init__(self, reactor: IReactorTime, settings: McpSettings, loop: ILoop) -> None:
        self._reactor, self._settings = reactor, settings
        self._loop = loop
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._routes: IAgentRoutes | None = None
        self._servers: dict[str, SessionServer] = {}

    def open(self, routes: IAgentRoutes) -> Deferred[None]:
        """Start the asyncio loop, and serve agents once it runs. The returned Deferred fires then.

        :param routes: the routes through which the servers act.
        """

        def opened(_: None) -> None:
            self._routes = routes

        return self._loop.start().addCallback(opened)

    def close(self) -> Deferred[None]:
        """Stop all servers and the loop. Call it once, after L{open} has fired.

        :return: a Deferred that fires when all have stopped.
        """
        self._routes = None
        for session_server in list(self._servers.values()):
            session_server.close()
        return self._loop.stop()

    async def serve(self, request: McpRequest) -> McpReply:
        if self._routes is None:
            raise InternalError("MCP is not served now.")
        session_id = request.session.id
        if session_id not in self._servers:
            self._add_server(request, self._routes)
        return await self._servers[session_id].serve(request)

    def ended(self, session_id: str) -> None:
        session_server = self._servers.get(session_id)
        if session_server is not None:
            session_server.close()

    def _add_server(self, request: McpRequest, routes: IAgentRoutes) -> None:
        if len(self._servers) >= MOST_AGENTS:
            raise LimitExceeded("Too many agents speak MCP over HTTP at once.", {"retry_after": 60})
        session_id = request.session.id
        listed = self._settings.listed_actions
        session = SessionEnvironment("", request.token, client=request.session.agent, listed_actions=listed)
        daemon = Daemon(InProcessClient(routes, request.token, self._reactor))
        bridge, sealing = self._loop.bridge, sealing_for(session_id, self._key)
        # Calls have a limit of their own, because a call may continue after its request has ended.
        served = AgentServer(self._reactor, bridge, session, daemon, sealing, MOST_UNDER_WAY)
        session_server = SessionServer(
            self._reactor, bridge, self._settings, served, lambda: self._servers.pop(session_id, None)
        )
        self._servers[session_id] = session_server
        session_server.open()
