"""MCP for every agent that speaks HTTP: a server for each, in one loop beside the reactor."""

from __future__ import annotations

import logging
import secrets
from typing import Protocol

from mcp.server.request_state import RequestStateSecurity
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from aileron.client import LONGEST_WAIT_SECONDS, Daemon, InProcessClient, SessionEnvironment
from aileron.errors import InternalError, LimitExceeded
from aileron.interfaces import IAgentRoutes, IMcp
from aileron.values import McpReply, McpRequest, McpSettings

from ._agent import AgentServer
from ._bridge import ThreadBridge
from ._session_server import MOST_UNDER_WAY, SessionServer

_LOGGERS = ("mcp", "sse_starlette", "aileron.mcp", "asyncio")
_log = Logger()

MOST_AGENTS = 64
_KEY_BYTES = 32


class ILoop(Protocol):
    """An asyncio loop that is started and stopped."""

    @property
    def bridge(self) -> ThreadBridge:
        """Between it and the reactor."""

    def start(self) -> Deferred[None]:
        """Start it; fires when it runs."""

    def stop(self) -> Deferred[None]:
        """End it; fires when it has ended."""


def sealing_for(session_id: str, key: bytes) -> RequestStateSecurity:
    """Make what seals the states of one agent's clients, so that nobody else can hand them back.

    :param key: 32 bytes at least.
    """
    return RequestStateSecurity(keys=[key], ttl=LONGEST_WAIT_SECONDS, bind_principal=lambda _ctx: session_id)


@implementer(IMcp)
class HttpEndpoint:
    """Serves each agent with a server of its own, made at its first request and reached only with its token.

    What a server does it asks of the agent site's routes, with the token of its agent: there is no other way in.

    :param reactor: provides time.
    :param loop: not yet running.
    """

    def __init__(self, reactor: IReactorTime, settings: McpSettings, loop: ILoop) -> None:
        self._reactor, self._settings = reactor, settings
        self._loop = loop
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._routes: IAgentRoutes | None = None
        self._servers: dict[str, SessionServer] = {}

    def open(self, routes: IAgentRoutes) -> Deferred[None]:
        """Begin to serve; fires when the loop runs.

        :param routes: where everything is asked.
        """

        def opened(_: None) -> None:
            self._routes = routes

        return self._loop.start().addCallback(opened)

    def close(self) -> Deferred[None]:
        """End every server and the loop; fires when that is done.  To be called once, after L{open} has fired."""
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
        # Whoever made a call may still wait for it, whose request is over.
        served = AgentServer(self._reactor, bridge, session, daemon, sealing, MOST_UNDER_WAY)
        session_server = SessionServer(
            self._reactor, bridge, self._settings, served, lambda: self._servers.pop(session_id, None)
        )
        self._servers[session_id] = session_server
        session_server.open()


class LogFilter(logging.Handler):
    """Says of each record who made it where, and the kind of the failure; nothing of its message."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log who made a record, where, and the kind of its exception, without its message."""
        kind = record.exc_info[0].__qualname__ if record.exc_info and record.exc_info[0] else "no exception"
        place = f"{record.pathname}:{record.lineno}"
        _log.warn("{name} complains at {place}: {kind}", name=record.name, place=place, kind=kind)


def filter_logs(level: int = logging.ERROR) -> None:
    """Have the loggers of the SDK, and ours beside it, say no more than that; twice is safe."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [LogFilter(level)]
        logger.propagate = False
