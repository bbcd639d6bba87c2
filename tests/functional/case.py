"""The test case of functional tests: the real reactor, a home of its own, and everything it started ended."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from tests.functional import opencode
from tests.functional.home import Home, installed
from tests.functional.llm import ScriptedLLM
from tests.functional.mcp_client import McpClient, Server
from tests.functional.process import Command, Finished, Running
from tests.functional.reactor import IKitReactor, until
from tests.functional.script import Turn
from tests.functional.slack import FakeSlack


class FunctionalTestCase(TestCase):
    """Starts processes and services and ends them when the test is over, however it ends.

    :cvar timeout: the deadline of a whole test, in seconds, should a wait have none.
    """

    timeout = 300

    def setUp(self) -> Any:
        """Make the home.

        :return: nothing here; elsewhere it may be a Deferred.
        """
        from twisted.internet import reactor

        self.reactor = cast(IKitReactor, reactor)
        self.home = Home.make()
        self.addCleanup(self.home.remove)

    def llm(self, turns: Mapping[str, Sequence[Turn]] | Sequence[Turn], port: int = 0) -> ScriptedLLM:
        """A scripted model; the test fails at its end if the script was not followed to the letter.

        :param turns: of the one model that the kit's agents use, or by model name.
        :param port: 0: one that the system chooses.
        """
        by_model = turns if isinstance(turns, Mapping) else {opencode.MODEL: turns}
        service = ScriptedLLM.listen(self.reactor, by_model, port)
        self.addCleanup(service.script.check)
        self.finally_(service.stop)
        return service

    def slack(self, token: str | None = None, port: int = 0) -> FakeSlack:
        """A service that stands for Slack; see `FakeSlack.listen`."""
        service = FakeSlack.listen(self.reactor, token, port)
        self.finally_(service.stop)
        return service

    def start(self, command: Command) -> Running:
        """Start a process; what is left of its group is killed at the test's end."""
        running = Running.start(self.reactor, command)
        self.finally_(running.kill)
        return running

    def start_mcp(
        self, environment: Mapping[str, str], directory: Path, program: Sequence[str] | None = None
    ) -> McpClient:
        """Start ``aileron-mcp``, no hands shaken yet; it is killed at the test's end.

        :param program: what stands in its place, such as `ForkServer.command`.
        """
        server, arguments = Server(), program or (installed("aileron-mcp"),)
        self.reactor.spawnProcess(server, arguments[0], arguments, environment, str(directory))
        self.finally_(lambda: self._end_server(server))
        return McpClient(self.reactor, server)

    async def _end_server(self, server: Server) -> None:
        if server.status is None:
            server.process.signalProcess("KILL")
            await until(self.reactor, lambda: server.status is not None, 30, "the end of a killed server")
        server.process.loseConnection()

    async def run_command(self, command: Command, seconds: float = 150) -> Finished:
        """Run a command to its end.

        :param seconds: a busy machine of two processors takes a minute for one conversation of a real agent.
        :raises DeadlinePassedError: after killing it, when it takes longer.
        """
        return await self.start(command).finish(seconds)

    def finally_(self, ending: Callable[[], Coroutine[Deferred[Any], Any, None]]) -> None:
        """Await ``ending()`` when the test is over; the latest comes first."""
        self.addCleanup(lambda: Deferred.fromCoroutine(ending()))
