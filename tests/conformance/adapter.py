"""The agent site in this process: its channels and guard, ``/mcp``, the endpoint, server and thread as they are.

Only what that server serves is another.
"""

from __future__ import annotations

from typing import Any, cast

from mcp.server.request_state import RequestStateSecurity
from twisted.internet.address import IPv4Address
from twisted.internet.protocol import ServerFactory

from aileron.api import MCP_PATH, GuardedSite, SiteRules, agent_site
from aileron.client import Daemon, SessionEnvironment
from aileron.mcp._bridge import LoopThread, ThreadBridge
from aileron.mcp._http_endpoint import HttpEndpoint
from aileron.values import McpSettings
from tests.api.case import ApiCase
from tests.conformance.case import JudgingTestCase
from tests.conformance.everything import Everything
from tests.conformance.names import Names

_SETTINGS = McpSettings(http=True, sessions=200)  # judges leave those that they open


class AdapterTestCase(JudgingTestCase, ApiCase):
    """A site whose agents are served everything that the protocol has."""

    def setUp(self) -> None:
        """Make the parts, in memory."""
        super().setUp()
        ApiCase.setUp(self)

    async def serving(self) -> str:
        """Where a judge finds it."""
        thread: Any = LoopThread(self.reactor)
        endpoint = HttpEndpoint(self.reactor, _SETTINGS, thread, _everything)
        self.build(mcp=endpoint)
        resource = agent_site(self.deps)
        site = GuardedSite(resource, SiteRules(), self.reactor)
        listening = self.reactor.listenTCP(0, cast(ServerFactory, site), interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        address = listening.getHost()
        assert isinstance(address, IPv4Address)
        host = f"127.0.0.1:{address.port}"
        site.rules = SiteRules([host], bare_deletes=frozenset({MCP_PATH}))
        await endpoint.open(resource.routes)
        self.addCleanup(endpoint.close)
        return self.adding_token(address.port, self.agent_token(), Names())


def _everything(
    _reactor: object,
    _bridge: ThreadBridge,
    _session: SessionEnvironment,
    _daemon: Daemon,
    sealing: RequestStateSecurity,
) -> Everything:
    return Everything(sealing)
