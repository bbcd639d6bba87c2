"""A real MCP server behind approval: listed, pinned, called by an agent through the installed daemon, and changed."""

import json
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, ServerFactory

from tests.functional.mcp_server import TOKEN
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Command, Finished, Running
from tests.functional.reactor import until

KEY = """
[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {key}"
"""
NAME = "local://me/tracker"
_SERVED_SECONDS = 30


class McpServerTestCase(OperatedTestCase):
    """The SDK's own server, in a process, at a port that stays."""

    def setUp(self) -> Any:
        """Find a port, and start the server there."""
        ready = super().setUp()
        factory: Any = ServerFactory.forProtocol(Protocol)
        listening: Any = self.reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.port: int = listening.getHost().port
        stopped: Deferred[None] = listening.stopListening()
        self.log = self.home.project / "calls.jsonl"
        return ready if stopped is None else stopped

    async def serve(self, description: str) -> Running:
        """Start the server, and wait until it answers."""
        arguments = ("-m", "tests.functional.mcp_server", str(self.port), description, str(self.log))
        environment = {**self.home.environment(), "PYTHONPATH": ":".join(sys.path)}
        running = self.start(
            Command(arguments=(sys.executable, *arguments), environment=environment, directory=self.home.project)
        )
        await until(self.reactor, self._answers, _SERVED_SECONDS, "the MCP server")
        return running

    def _answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def calls(self) -> list[Mapping[str, Any]]:
        """What the server has done."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


class McpServerTests(McpServerTestCase):
    """A connector to it."""

    @property
    def connector(self) -> Path:
        """Its file in the project."""
        return self.home.project / "tracker.toml"

    async def import_(self, *arguments: str, code: int = 0) -> Finished:
        """Import tools into the project, as a user does."""
        return await self.command("connector", "import", *arguments, "--output", str(self.home.project), code=code)

    async def begin(self) -> None:
        """Make a connector for the server, with its credential, and the action that lists its tools."""
        url = f"http://127.0.0.1:{self.port}/mcp"
        await self.operator("vault", "init")
        begun = await self.import_(url, "--mcp", "--name", NAME)
        self.assertIn(f"aileron connector import {NAME}", begun.stdout)
        with self.connector.open("a") as end:
            end.write(KEY)
        await self.operator("connector", "add", str(self.connector), "--yes")
        await self.add(self.home.project / "tracker-list-tools.md")
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": TOKEN}
        setup = ("binding", "setup", NAME)
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)

    async def accept(self, *more: str) -> Finished:
        """Pin the tool as it is now, and trust what was written."""
        written = await self.import_(NAME, "--op", "create_issue", "--force", *more)
        await self.operator("connector", "add", str(self.connector), "--force", "--yes")
        await self.add(self.home.project / "tracker-create-issue.md", force=True)
        return written

    async def test_from_listing_to_change(self) -> None:
        """A tool that was pinned is called once when approved, and after it changed only once that was reviewed."""
        server = await self.serve("Creates an issue in one team.")
        await self.begin()
        listed = await self.import_(NAME)
        self.assertIn("new: Creates an issue in one team.", listed.stdout)
        await self.accept()
        text = self.connector.read_text()
        self.assertIn('effect = "write"', text)
        pin = re.findall(r'^pin = "(sha256:[0-9a-f]{64})"$', text, re.MULTILINE)[0]
        session = await self.session()
        client = await self.mcp(session)
        given = {"title": "A bug", "team_id": 7}
        calling = Deferred.fromCoroutine(client.call("tracker_create_issue", given))
        [waiting] = await self.waiting()
        self.assertEqual([], self.calls())
        shown = json.dumps(await self.told("approval", "show", str(waiting["id"])))
        self.assertIn(pin, shown)
        await self.approve(str(waiting["id"]))
        result = await calling
        self.assertFalse(result.is_error, result.text)
        self.assertIn("A bug", result.text)
        self.assertNotIn(TOKEN, result.text)
        expected = {"tool": "create_issue", "arguments": {"title": "A bug", "teamId": 7}, "token": f"Bearer {TOKEN}"}
        self.assertEqual([expected], self.calls())
        await server.kill()
        await self.serve("Creates an issue in every team.")
        reply = (await self.run_action(session, "tracker-create-issue", {"title": "Another"})).body
        ended = await self.approve(str(reply["run_id"]), code=1)
        self.assertIn(f"aileron connector import {NAME}", ended.stdout + ended.stderr)
        self.assertEqual(1, len(self.calls()))
        listed = await self.import_(NAME)
        self.assertIn("Creates an issue in [-one-]{+every+} team.", listed.stdout)
        self.assertEqual(text, self.connector.read_text())
        await self.accept()
        self.assertNotIn(pin, self.connector.read_text())
        reply = (await self.run_action(session, "tracker-create-issue", {"title": "Another"})).body
        await self.approve(str(reply["run_id"]))
        self.assertEqual(2, len(self.calls()))
        await self.command("daemon", "stop")  # its thread ends with it
        logged = "".join(each.read_text(errors="replace") for each in self.home.root.rglob("*.log"))
        self.assertFalse(re.search(TOKEN, logged))
