"""One agent's MCP server: the daemon's actions for one session, over any transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateSecurity
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from aileron.base.bridge import ThreadBridge
from aileron.base.json import JSON
from aileron.client import Daemon, SessionEnvironment

from ._calls import Calls
from ._definitions import ToolDefinition
from ._server import ToolServer
from ._texts import ToolResult
from ._tools import CallOptions
from .offering.tools import ToolListing
from .waiting.calling import ClientPolicy
from .waiting.running import Withdrawals

_NO_BOUND = 1 << 30
_TOO_MANY = ToolResult(
    "Too many calls are running. Nothing was sent. Call again when one of them has finished.", is_error=True
)

_log = Logger()


@frozen
class BridgedTools:
    """An L{ITools} for the asyncio loop. Each call runs in the reactor's thread.

    :ivar room: limits concurrent calls. Calls of disconnected clients may continue and count too.
    """

    bridge: ThreadBridge
    calls: Calls
    room: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(_NO_BOUND))

    async def offered(self, *, hears_changes: bool) -> Sequence[ToolDefinition]:
        return await self.bridge.call(lambda: self.calls.offered(hears_changes=hears_changes))

    async def actions(self) -> Sequence[ToolDefinition]:
        return await self.bridge.call(self.calls.link.offered)

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        return await self.bridge.call(self.calls.recent_runs)

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        if self.room.locked():
            return _TOO_MANY
        async with self.room:
            return await self.bridge.call(lambda: self.calls.call(tool, arguments, options))

    async def withdraw(self, key: str) -> None:
        await self.bridge.call(lambda: self.calls.withdrawals.withdraw(key))

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        return await self.bridge.call(lambda: self.calls.daemon.run_status(run_id, 0))

    async def withdraw_run(self, run_id: str) -> None:
        await self.bridge.call(lambda: self.calls.withdraw_run(run_id))


class AgentServer:
    """The MCP server of one agent, from L{start} until L{stop}. Both transports use it: standard streams and HTTP.

    :param session: the launcher's settings for the agent.
    :param daemon: the daemon with the agent's session.
    :param sealing: seals the state that clients send back, or None to seal with a new key.
    :param most_calls: the limit of concurrent calls.
    :param listing: the offered tools if their polling has started, or None to make a listing. Its changes are reported
        to this server.
    :ivar server: the SDK's server, to be used in the loop.
    """

    def __init__(
        self,
        reactor: Any,
        bridge: ThreadBridge,
        session: SessionEnvironment,
        daemon: Daemon,
        sealing: RequestStateSecurity | None = None,
        most_calls: int = _NO_BOUND,
        listing: ToolListing | None = None,
    ) -> None:
        self._bridge = bridge
        self._stopped = False
        listing = listing or ToolListing.make(daemon, session, reactor)
        self._link = listing.link
        self._link.notify(self.announce_change)
        self._withdrawals = Withdrawals(daemon)
        calls = Calls(daemon, self._link, reactor, listing.wait_seconds, self._withdrawals, listing.shortlist)
        self._tools = ToolServer(
            BridgedTools(bridge, calls, asyncio.Semaphore(most_calls)), ClientPolicy(session, sealing=sealing)
        )
        self.server: Server[Any] = self._tools.server

    def start(self) -> None:
        """Start polling the daemon's actions."""
        self._link.start()

    def stop(self) -> None:
        """Stop the server. Idempotent."""
        self._stopped = True
        self._link.stop()
        self._withdrawals.stop()

    def supervise(self, serving: Deferred[None], then: Callable[[], object] = lambda: None) -> None:
        """Call C{then} when C{serving} ends. If it fails while the server runs, log the failure."""
        serving.addErrback(self._note_failed)
        serving.addBoth(lambda _: then())

    def announce_change(self) -> None:
        """Notify the clients that the tools changed, unless the server has stopped.

        :raises SideGone: if the loop has ended.
        """
        if not self._stopped:
            self.supervise(self._bridge.ask(self._tools.announce_change))

    def announce_missed_change(self) -> None:
        """Notify the client that the tools changed between the list that it received and the start of this server.

        :raises SideGone: if the loop has ended.
        """
        if not self._stopped:
            self.supervise(self._bridge.ask(self._tools.announce_missed_change))

    def _note_failed(self, failure: Any) -> None:
        if not self._stopped and not failure.check(CancelledError):
            _log.failure("the MCP server failed", failure)
