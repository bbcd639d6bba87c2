"""A daemon with fixture actions, and a judge before it."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlsplit

from twisted.internet.address import IPv4Address
from twisted.internet.protocol import ServerFactory

from tests.conformance import judges
from tests.conformance.fixtures import add_fixtures
from tests.conformance.proxy import AddingToken
from tests.functional.mcp_http import McpHttpTestCase
from tests.functional.operated import AgentSession
from tests.functional.process import Command, Finished

_SESSIONS = "  sessions: 200\n"  # judges leave those that they open


class JudgedTestCase(McpHttpTestCase):
    """Runs judges."""

    async def furnish_with_fixtures(self) -> AgentSession:
        """The daemon, and the session of an agent whose calls may wait for long."""
        await self.furnish_with_mcp(_SESSIONS)
        await add_fixtures(self)
        return await self.session("claude")

    async def judge(self, name: str, path: str, *arguments: str, seconds: float) -> Finished:
        """Run a script of a judge's."""
        command = Command(
            arguments=(judges.node(), judges.script(name, path), *arguments),
            environment=self.home.environment(),
            directory=self.home.project,
        )
        return await self.run_command(command, seconds)

    def listening_for(self, session: AgentSession) -> str:
        """Where whoever comes is that agent."""
        port = urlsplit(self.url).port
        assert port is not None
        adding = AddingToken(self.reactor, port, session.token)
        listening = self.reactor.listenTCP(0, cast(ServerFactory, adding), interface="127.0.0.1")
        address = listening.getHost()
        assert isinstance(address, IPv4Address)
        adding.port = address.port
        self.addCleanup(listening.stopListening)
        return f"http://localhost:{adding.port}/mcp"
