"""Local MCP servers that others have written, behind approval, in the sandbox where there is one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.functional import servers
from tests.functional.loopback import LoopbackSite, headers_of
from tests.functional.operated import PASSPHRASE, AgentSession, OperatedTestCase

_CONNECTOR = """
[connector]
name = "local://me/foreign"
version = "1.0.0"
kind = "mcp"
private_network = true

[mcp]
command = {command}
directory = {directory}
{more}
"""
_GITLAB = """environment = {{ GITLAB_API_URL = "${{api.url}}", GITLAB_PERSONAL_ACCESS_TOKEN = "placeholder" }}

[mcp.api]
url = "{url}/api/v4"

[credential]
kind = "api_key"
header = "PRIVATE-TOKEN"
"""
_TOKEN = "gitlab-canary-31415"
_OPERATION = """
[operations.call]
tool = {tool}
pin = "{pin}"
"""
_ACTION = """+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/foreign"
version = "1.0.0"
capabilities = ["{operation}"]

[[execute]]
id = "call"
connector = "local://me/foreign"
op = "{operation}"
inputs = {inputs}

[approval]
required = {gated}
+++
# {name}

Does it.
"""


class _GitLab(Resource):
    """As much of GitLab as creating an issue needs."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[str, dict[str, str]]] = []

    def render_POST(self, request: Request) -> bytes:
        """Create one."""
        self.seen.append((request.uri.decode(), headers_of(request)))
        user = {"id": 1, "name": "Ada", "username": "ada", "avatar_url": "x", "web_url": "x"}
        issue = {"id": 7, "iid": 7, "project_id": 3, "title": "Grass", "description": "", "state": "opened"}
        more: dict[str, Any] = {
            "author": user,
            "assignees": [],
            "labels": [],
            "milestone": None,
            "created_at": "t",
            "updated_at": "t",
        }
        request.setHeader("Content-Type", "application/json")
        return json.dumps({**issue, **more, "closed_at": None, "web_url": "https://gitlab.example/7"}).encode()


class LocalServerTests(OperatedTestCase):
    """Each is asked for its tools, and one of them is called behind approval."""

    async def called(self, command: Sequence[str], tool: str, inputs: str, more: str = "") -> Any:
        """What a tool answers once its call is approved.

        :param more: of the connector file; with a credential.
        """
        await self.operator("vault", "init")
        directory = json.dumps(str(self.directory))
        text = _CONNECTOR.format(command=json.dumps(command), directory=directory, more=more)
        self._put_connector("foreign", text)
        if more:
            await self.operator("connector", "trust", "local://me/foreign", "--yes")
            fed, setup = (
                {"--passphrase-fd": PASSPHRASE, "--secret-fd": _TOKEN},
                ("binding", "setup", "local://me/foreign"),
            )
            self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        await self.add(self._action("list-them", "list_tools", "{}", gated="false"))
        session = await self.session()
        output = await self._output(session, "list-them")
        pins = {each["name"]: each["pin"] for each in output["tools"]}
        self._put_connector("foreign", text + _OPERATION.format(tool=json.dumps(tool), pin=pins[tool]))
        await self.add(self._action("call-it", "call", inputs, gated="true"))
        run_id = str((await self.run_action(session, "call-it", {})).body["run_id"])
        await self.approve(run_id)
        return (await self.result(session, run_id, 20)).body["result"]["output"]

    @property
    def directory(self) -> Path:
        """Where the server works."""
        made = self.home.project / "work"
        made.mkdir(exist_ok=True)
        return made

    def _action(self, name: str, operation: str, inputs: str, *, gated: str) -> Path:
        path = self.home.project / f"{name}.md"
        path.write_text(_ACTION.format(name=name, operation=operation, inputs=inputs, gated=gated))
        return path

    async def _output(self, session: AgentSession, name: str) -> Any:
        reply = await self.run_action(session, name, {}, wait=40)
        self.assertIn("result", reply.body, reply.text)
        return reply.body["result"]["output"]

    async def test_everything(self) -> None:
        """The one that tries every part of the protocol."""
        said = await self.called(servers.of_node(servers.EVERYTHING), "echo", '{ message = "hello" }')
        self.assertIn("hello", said["text"])

    async def test_files(self) -> None:
        """The one for files writes where it may, and nowhere else."""
        inputs = f'{{ path = "{self.directory / "note.txt"}", content = "hello" }}'
        await self.called(servers.of_node(servers.FILES, str(self.directory)), "write_file", inputs)
        self.assertEqual((self.directory / "note.txt").read_text(), "hello")

    async def test_api(self) -> None:
        """One that speaks to an API creates something there with a credential that it does not have."""
        gitlab = _GitLab()
        site = LoopbackSite.listen(self.reactor, gitlab)
        self.finally_(site.stop)
        inputs = '{ project_id = "3", title = "Grass" }'
        said = await self.called(servers.of_node(servers.GITLAB), "create_issue", inputs, _GITLAB.format(url=site.url))
        self.assertIn("https://gitlab.example/7", said["text"])
        ((uri, headers),) = gitlab.seen
        self.assertEqual((uri, headers["private-token"]), ("/api/v4/projects/3/issues", _TOKEN))
        self.assertNotIn("authorization", headers)

    async def test_python(self) -> None:
        """One in Python, with an SDK of its own."""
        command = servers.of_python("mcp_server_time", "--local-timezone", "UTC")
        said = await self.called(command, "get_current_time", '{ timezone = "UTC" }')
        self.assertIn("UTC", said["text"])
