"""A judge before a daemon with fixture actions."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from twisted.internet.address import IPv4Address
from twisted.internet.protocol import ServerFactory

from tests.conformance import judges
from tests.conformance.fixtures import add_fixtures
from tests.conformance.names import Names
from tests.conformance.proxy import AddingToken
from tests.functional.mcp_http import McpHttpTestCase
from tests.functional.operated import AgentSession
from tests.functional.process import Command, Finished

_SESSIONS = "  sessions: 200\n"  # judges leave those that they open
_SCENARIO_SECONDS = 90
RUN_SECONDS = 500


class JudgedTestCase(McpHttpTestCase):
    """A daemon with fixture actions, and judges to be run."""

    async def furnish_with_fixtures(self) -> AgentSession:
        """The daemon, and the session of an agent whose calls may wait for long."""
        await self.furnish_with_mcp(_SESSIONS)
        await add_fixtures(self)
        return await self.session("judge")

    async def judge(self, name: str, path: str, *arguments: str, seconds: float) -> Finished:
        """Run a script of a judge's."""
        command = Command(
            arguments=(judges.node(), judges.script(name, path), *arguments),
            environment=self.home.environment(),
            directory=self.home.project,
        )
        return await self.run_command(command, seconds)

    async def conform(self, url: str, revision: str) -> tuple[Path, Finished]:
        """Have the suite judge by what a revision requires.

        :return: where it wrote what it found, and what it said.
        """
        results = self.home.root / "results"
        finished = await self.judge(
            judges.CONFORMANCE,
            "dist/index.js",
            *("server", "--url", url, "--requirements", revision, "-o", str(results)),
            *("--timeout", str(_SCENARIO_SECONDS * 1000)),
            seconds=RUN_SECONDS,
        )
        self.assertIn("Total:", finished.stdout, finished.stderr)
        return results, finished

    def listening_for(self, session: AgentSession, names: Names) -> str:
        """Where whoever comes is that agent.

        :param names: the judge's, and what they are there.
        """
        adding = AddingToken(self.reactor, urlsplit(self.mcp_url).port or 0, session.token, names)
        listening = self.reactor.listenTCP(0, cast(ServerFactory, adding), interface="127.0.0.1")
        address = listening.getHost()
        assert isinstance(address, IPv4Address)
        adding.port = address.port
        self.addCleanup(listening.stopListening)
        return f"http://localhost:{adding.port}/mcp"
