"""MCP for every agent that speaks HTTP: a desk for each, in one loop beside the reactor."""

from __future__ import annotations

import secrets
from typing import Any

from mcp.server.request_state import RequestStateSecurity
from twisted.internet.defer import Deferred
from zope.interface import implementer

from aileron.client import LONGEST_WAIT_SECONDS, Connections, SessionEnvironment
from aileron.errors import InternalError, LimitExceeded
from aileron.interfaces import IMcpService
from aileron.mcp._bridge import IBridge
from aileron.mcp._thread import LoopThread
from aileron.values import McpReply, McpRequest, McpSettings

from .desk import Desk

MOST_AGENTS = 64
_KEY_BYTES = 32


@implementer(IMcpService)
class HttpDoor:
    """Serves each agent at a desk of its own, which nobody finds who has not its token.

    What a desk does it asks of the agent site, with the token of its agent: there is no other way in.

    :param reactor: provides time, TCP and threads.
    """

    def __init__(self, reactor: Any, settings: McpSettings) -> None:
        self._reactor, self._settings = reactor, settings
        self._connections = Connections(reactor)
        self._thread = LoopThread(reactor)
        self._bridge: IBridge = self._thread.bridge
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._url = ""
        self._desks: dict[str, Desk] = {}

    def open(self, url: str) -> Deferred[None]:
        """See L{IMcpService.open}."""

        def opened(_: None) -> None:
            self._url = url

        return self._thread.start().addCallback(opened)

    def close(self) -> Deferred[None]:
        """See L{IMcpService.close}."""
        self._url = ""
        for desk in list(self._desks.values()):
            desk.close()
        return self._thread.stop().addCallback(lambda _: self._connections.close())

    async def serve(self, request: McpRequest) -> McpReply:
        """See L{IMcp.serve}."""
        if not self._url:
            raise InternalError("MCP is not served now.")
        session_id = request.session.id
        if session_id not in self._desks:
            self._furnish(request)
        return await self._desks[session_id].serve(request)

    def ended(self, session_id: str) -> None:
        """See L{IMcp.ended}."""
        desk = self._desks.get(session_id)
        if desk is not None:
            desk.close()

    def _furnish(self, request: McpRequest) -> None:
        if len(self._desks) >= MOST_AGENTS:
            raise LimitExceeded("Too many agents speak MCP over HTTP at once.", {"retry_after": 60})
        session_id = request.session.id
        listed = self._settings.listed_actions
        session = SessionEnvironment(self._url, request.token, client=request.session.agent, listed_actions=listed)
        desk = Desk(
            self._reactor,
            self._bridge,
            self._settings,
            session,
            self._connections,
            sealing=RequestStateSecurity(
                keys=[self._key], ttl=LONGEST_WAIT_SECONDS, bind_principal=lambda _ctx: session_id
            ),
            closed=lambda: self._desks.pop(session_id, None),
        )
        self._desks[session_id] = desk
        desk.open()
