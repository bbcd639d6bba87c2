"""MCP over HTTP as the daemon runs it. Importing this module loads the MCP SDK."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from aileron.api.agent_routes import SiteHandler
from aileron.base.bridge import LoopThread, filter_logs
from aileron.base.life import Life
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature

from ._http_endpoint import HttpEndpoint
from ._routes import mcp_handler
from .values import PATH, McpSettings


@frozen(eq=False)
class RunningMcp(RunningFeature):
    """The endpoint at C{/mcp} of the agent site.

    :ivar life: closes the endpoint when the daemon ends.
    """

    endpoint: HttpEndpoint
    life: Life
    handler: SiteHandler = field(init=False)

    @handler.default
    def _make_handler(self) -> SiteHandler:
        return mcp_handler(self.endpoint)

    @property
    def resources(self) -> Mapping[str, SiteHandler]:  # type: ignore[override]
        """The handler of the path C{/mcp}, by path."""
        return {PATH: self.handler}

    async def serve(self, sites: ListeningSites) -> None:
        await self.endpoint.open(sites.routes)
        self.life.at_end(self.endpoint.close)

    def session_ended(self, session_id: str) -> None:
        self.endpoint.ended(session_id)


def start_mcp(core: Core, settings: McpSettings) -> RunningMcp:
    """Build the endpoint. Requests are refused until both sites listen."""
    filter_logs()
    reactor = core.process.reactor
    return RunningMcp(HttpEndpoint(reactor, settings, LoopThread(reactor)), core.process.life)
