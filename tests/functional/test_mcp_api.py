"""A local MCP server that gets its credential by the relay: what its API sees, and what the server never does."""

from __future__ import annotations

import json
import sys
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from aileron.home.lock import running_pid
from tests.extent import seldom
from tests.functional import tracker_server
from tests.functional.canary import in_files, in_process
from tests.functional.loopback import LoopbackSite, headers_of
from tests.functional.operated import PASSPHRASE, AgentSession, OperatedTestCase
from tests.functional.reactor import until
from tests.functional.tree import descendants

TOKEN = "tracker-canary-48151623"
NAME = "local://me/tracker"
CONNECTOR = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
kind = "mcp"
private_network = true

[mcp]
command = ["{python}", "{server}"]
directory = "{directory}"
environment = {{ TRACKER_API_URL = "${{api.url}}", TRACKER_TOKEN = "placeholder" }}
{more}

[mcp.api]
url = "{url}/api/v1"

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {{key}}"
"""


class _Tracker(Resource):
    """The API: it answers well, or in a way that a path asks for."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []

    def render(self, request: Request) -> bytes | int:
        """Note a request, and answer it."""
        assert request.content is not None
        uri, headers = request.uri.decode(), headers_of(request)
        self.seen.append((request.method.decode(), uri, headers, request.content.read()))
        if uri.endswith("/echo"):
            return f"you sent {headers['authorization']}".encode()
        if uri.endswith("/large"):
            request.setHeader("Content-Length", str(10 * 2**30))
            request.write(b"x" * 2**20)
            return NOT_DONE_YET
        if uri.endswith("/away"):
            request.setResponseCode(302)
            request.setHeader("Location", "http://elsewhere.example/issues")
        return b"ISSUE-7"


class McpApiTests(OperatedTestCase):
    """A daemon with a connector to the server, in a sandbox that reaches nothing but its API."""

    more = ""

    def setUp(self) -> None:
        super().setUp()
        self.directory = self.home.project / "tracker"
        self.directory.mkdir()
        self.tracker = _Tracker()
        self.site = LoopbackSite.listen(self.reactor, self.tracker)
        self.finally_(self.site.stop)

    async def ready(self) -> AgentSession:
        """Import the server's tools, as a user does; an agent's session."""
        connector = self.home.project / "tracker.toml"
        connector.write_text(
            CONNECTOR.format(
                python=sys.executable,
                server=tracker_server.__file__,
                directory=self.directory,
                url=self.site.url,
                more=self.more,
            )
        )
        await self.operator("vault", "init")
        await self.operator("connector", "add", str(connector), "--yes")
        await self.command("connector", "import", NAME, "--output", str(self.home.project))
        await self.add(self.home.project / "tracker-list-tools.md")
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": TOKEN}
        setup = ("binding", "setup", NAME)
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        tools = ("create_issue", "list_issues", "send", "look", "keep_on")
        chosen = [word for tool in tools for word in ("--op", tool)]
        reads = (
            "--read",
            "list_issues",
            "--read",
            "look",
            "--read",
            "send",
            "--read",
            "keep_on",
            "--output",
            str(self.home.project),
            "--force",
        )
        await self.command("connector", "import", NAME, *chosen, *reads)
        await self.operator("connector", "add", str(connector), "--force", "--yes")
        await self.add(*(self.home.project / f"tracker-{tool.replace('_', '-')}.md" for tool in tools))
        return await self.session()

    async def call(self, session: AgentSession, tool: str, **given: str) -> Any:
        """Have a tool called, approved where it must be; the text of its result."""
        wait = None if tool == "create_issue" else 30  # which waits for nobody's approval
        asked = await self.run_action(session, f"tracker-{tool.replace('_', '-')}", given, wait=wait)
        if wait is None:
            self.assertEqual(asked.status, 202, asked.text)
            run_id = str(asked.body["run_id"])
            shown = json.dumps(await self.told("approval", "show", run_id))
            self.assertIn(f"added by Aileron to requests to {self.site.url}/api/v1; the program cannot read it", shown)
            await self.approve(run_id)
            asked = await self.result(session, run_id, 30)
        return asked.body["result"]["output"]["text"]

    async def send(self, session: AgentSession, *heads: str) -> list[str]:
        """Have requests sent as they are, in one call of a read; what came back for each."""
        raw = tracker_server.BETWEEN.join(f"{head}\nConnection: close\n\n".replace("\n", "\r\n") for head in heads)
        said = await self.call(session, "send", raw=raw)
        return str(said).split(tracker_server.BETWEEN)

    def targets(self) -> list[str]:
        """What the API was asked for."""
        return [uri for _, uri, _, _ in self.tracker.seen]

    async def test_calls(self) -> None:
        """The API gets the credential, and the server has it nowhere: not in its memory, and not in what is kept."""
        session = await self.ready()
        self.assertEqual(await self.call(session, "create_issue", title="Grass"), "ISSUE-7")
        method, uri, headers, body = self.tracker.seen[-1]
        self.assertEqual((method, uri, body), ("POST", "/api/v1/issues", b"Grass"))
        self.assertEqual((headers["authorization"], headers["host"]), (f"Bearer {TOKEN}", self.site.url[7:]))
        self.assertNotIn("cookie", headers)
        self.assertEqual(await self.call(session, "list_issues"), "ISSUE-7")
        half = len(TOKEN) // 2
        self.assertEqual(
            await self.call(session, "look", first=TOKEN[half - 1 :: -1], second=TOKEN[: half - 1 : -1]), "found: False"
        )
        servers = self.processes()
        self.assertNotEqual(servers, [])
        for pid in servers:
            self.assertEqual(in_process(pid, TOKEN), [])
        succeeded = await self.audit("--type", "execution.succeeded")
        counted = [
            attempt["api"] for event in succeeded for attempt in event["payload"]["attempts"] if "api" in attempt
        ]
        self.assertIn({"requests": 1, "failed": 0, "refused": 0, "sent": 5, "received": 7, "between": 0}, counted)
        await self.command("daemon", "stop")
        self.assertEqual(in_files(self.home.root, TOKEN), [])

    def processes(self) -> list[int]:
        """The processes of this test's daemon that run the server; those of other tests may end at any time."""
        daemon = running_pid(self.state)
        assert daemon
        return [each.pid for each in descendants(daemon) if tracker_server.__file__ in each.arguments]

    async def test_hostile(self) -> None:
        """Nothing leads to another host or path, no answer brings the credential, and between calls nothing passes."""
        session = await self.ready()
        before = len(self.tracker.seen)
        refused = {
            "GET http://elsewhere.example/api/v1/issues HTTP/1.1\nHost: HOST": 405,
            "CONNECT elsewhere.example:443 HTTP/1.1\nHost: HOST": 405,
            "GET BASE/issues HTTP/1.1\nHost: elsewhere.example": 421,
            "GET PATH/admin HTTP/1.1\nHost: HOST": 403,
            "GET BASE/../admin HTTP/1.1\nHost: HOST": 403,
            "GET BASE/%252e%252e/admin HTTP/1.1\nHost: HOST": 403,
            "GET BASE/issues HTTP/1.1\nHost: HOST\nX-A: b\x00c": 400,
            "POST BASE/issues HTTP/1.1\nHost: HOST\nContent-Length: 0": 403,
            "GET BASE/issues HTTP/1.1\nHost: HOST\nContent-Length: 0\nTransfer-Encoding: chunked": 400,
        }
        said = await self.send(session, *refused)
        self.assertEqual([int(each.split(" ")[1]) for each in said], [*refused.values()], said)
        self.assertEqual(self.targets()[before:], [])
        paths = ("/away", "/echo", "/large")
        away, echo, large = await self.send(session, *(f"GET BASE{each} HTTP/1.1\nHost: HOST" for each in paths))
        self.assertIn("Location: http://elsewhere.example/issues", away)
        self.assertNotIn(TOKEN, echo)
        self.assertNotIn(TOKEN[:8], echo)
        self.assertIn("HTTP/1.1 502", large)
        self.assertEqual(self.targets()[before:], [f"/api/v1{each}" for each in paths])
        (echoed,) = await self.audit("--type", "secret.echoed")
        self.assertEqual(echoed["payload"]["forms"], ["plain"])
        await self.call(session, "keep_on")
        statuses = self.directory / tracker_server.STATUSES
        await until(self.reactor, lambda: statuses.exists() and "403" in statuses.read_text(), 20, "a refusal")
        passed = len(self.tracker.seen)
        await until(self.reactor, lambda: statuses.read_text().count("403") > 5, 20, "more refusals")
        self.assertEqual(len(self.tracker.seen), passed)
        (told,) = await self.audit("--type", "api.refused")
        self.assertEqual(told["connector"], NAME)


class UnconfinedMcpApiTests(McpApiTests):
    """The same without a sandbox: over loopback, by a path that nobody can guess."""

    more = 'sandbox = "none"'

    @seldom
    async def test_calls(self) -> None:
        """The API gets the credential, and the server does not."""
        await super().test_calls()

    async def test_hostile(self) -> None:
        """Who does not know the path gets nothing."""
        session = await self.ready()
        (said,) = await self.send(session, "GET /api/v1/issues HTTP/1.1\nHost: HOST")
        self.assertIn("HTTP/1.1 404", said)
        self.assertEqual(self.tracker.seen, [])
