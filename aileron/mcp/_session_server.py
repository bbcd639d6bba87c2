"""The server of one agent over HTTP: its own sessions of the protocol, its own bounds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, MutableMapping
from typing import Any

from attrs import evolve
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from twisted.internet.interfaces import IDelayedCall

from aileron.errors import LimitExceeded
from aileron.values import McpReply, McpRequest, McpSettings

from ._agent import AgentServer
from ._asgi import Receive, Send, exchange_request
from ._bridge import SideGone, ThreadBridge

MOST_UNDER_WAY = 32
"""Requests of one agent, and calls, also those whose clients have left."""

_MOST_BODY_BYTES = 1024 * 1024  # as the site's


class SessionServer:
    """Serves one agent, from L{open} until L{close}, which comes by itself once it has asked nothing for long.

    :param served: to that agent alone; it is started and stopped with this.
    :param closed: called when it closes.
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
        """Begin."""
        self._served.start()
        self._served.supervise(self._bridge.ask(self._run), self.close)

    def close(self) -> None:
        """End it, with whatever is under way.  Twice is safe."""
        if self._over:
            return
        self._over = True
        self._busy()
        self._served.stop()
        self._closed()
        with contextlib.suppress(SideGone):
            self._bridge.post(self._leave.set)

    async def serve(self, request: McpRequest) -> McpReply:
        """Answer one request of the agent.

        :raises LimitExceeded: it has too many under way.
        :raises InternalError: the server failed.
        """
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


def _make_once(*acts: Callable[[], object]) -> Callable[[], None]:
    """Return what calls each of C{acts} the first time, and nothing from then on."""
    left = list(acts)

    def call() -> None:
        while left:
            left.pop(0)()

    return call
