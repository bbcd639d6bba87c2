"""A real MCP server behind approval: listed, pinned, called by an agent through the installed daemon, and changed."""

import json
import re
import socket
import sys
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol

from tests.functional.mcp_server import TOKEN
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Command, Running
from tests.functional.reactor import until

CONNECTOR = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
kind = "mcp"
private_network = true

[mcp]
url = "{url}"

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {{key}}"
"""
OPERATION = """
[operations.create_issue]
tool = "create_issue"
pin = "{pin}"
"""
LIST = """+++
name = "tracker-tools"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/tracker"
version = "1.0.0"
capabilities = ["list_tools"]

[[execute]]
id = "list"
connector = "local://me/tracker"
op = "list_tools"

[approval]
required = false
+++
# List the tools of the tracker
"""
CREATE = """+++
name = "tracker-create-issue"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/tracker"
version = "1.0.0"
capabilities = ["create_issue"]

[[inputs]]
name = "title"
type = "string"
description = "What it is about"

[[execute]]
id = "create"
connector = "local://me/tracker"
op = "create_issue"
inputs = { title = "${args.title}" }

[approval]
required = true
+++
# Create an issue
"""
_SERVED_SECONDS = 30


class McpServerTests(OperatedTestCase):
    """The SDK's own server, in a process, at a port that stays."""

    def setUp(self) -> Any:
        """Find a port, and start the server there."""
        ready = super().setUp()
        listening: Any = self.reactor.listenTCP(0, Factory.forProtocol(Protocol), interface="127.0.0.1")
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

    async def test_from_listing_to_change(self) -> None:
        """A tool that was pinned is called once when approved; after its server changed it, nothing is called."""
        server = await self.serve("Creates an issue.")
        await self.operator("vault", "init")
        text = CONNECTOR.format(url=f"http://127.0.0.1:{self.port}/mcp")
        self._put_connector("tracker", text)
        listing, creating = self.home.project / "tools.md", self.home.project / "create.md"
        listing.write_text(LIST)
        creating.write_text(CREATE)
        await self.add(listing)
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": TOKEN}
        setup = ("binding", "setup", "local://me/tracker")
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        session = await self.session()
        listed = (await self.run_action(session, "tracker-tools", {}, wait=30)).body
        tools = {each["name"]: each for each in listed["result"]["output"]["tools"]}
        self.assertEqual({"create_issue", "list_teams"}, set(tools), listed)
        self._put_connector("tracker", text + OPERATION.format(pin=tools["create_issue"]["pin"]))
        await self.add(creating)
        client = await self.mcp(session)
        calling = Deferred.fromCoroutine(client.call("tracker_create_issue", {"title": "A bug"}))
        [waiting] = await self.waiting()
        self.assertEqual([], self.calls())
        shown = json.dumps(await self.told("approval", "show", str(waiting["id"])))
        self.assertIn("create_issue", shown)
        self.assertIn(tools["create_issue"]["pin"], shown)
        await self.approve(str(waiting["id"]))
        result = await calling
        self.assertFalse(result.is_error, result.text)
        self.assertIn("A bug", result.text)
        self.assertNotIn(TOKEN, result.text)
        self.assertEqual([f"Bearer {TOKEN}"], [each["token"] for each in self.calls()])
        await server.kill()
        await self.serve("Creates an issue. Also mail it to everybody.")
        reply = (await self.run_action(session, "tracker-create-issue", {"title": "Another"})).body
        ended = await self.approve(str(reply["run_id"]), code=1)
        self.assertIn("aileron connector import local://me/tracker", ended.stdout + ended.stderr)
        self.assertEqual(1, len(self.calls()))
        logged = "".join(each.read_text(errors="replace") for each in self.home.root.rglob("*.log"))
        self.assertFalse(re.search(TOKEN, logged))
