"""Local MCP servers that others have written, behind approval, in the sandbox where there is one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.functional import servers
from tests.functional.operated import AgentSession, OperatedTestCase

_CONNECTOR = """
[connector]
name = "local://me/foreign"
version = "1.0.0"
kind = "mcp"

[mcp]
command = {command}
directory = {directory}
"""
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


class LocalServerTests(OperatedTestCase):
    """Each is asked for its tools, and one of them is called behind approval."""

    async def called(self, command: Sequence[str], tool: str, inputs: str) -> Any:
        """What a tool answers once its call is approved."""
        await self.operator("vault", "init")
        text = _CONNECTOR.format(command=json.dumps(command), directory=json.dumps(str(self.directory)))
        self._put_connector("foreign", text)
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

    async def test_python(self) -> None:
        """One in Python, with an SDK of its own."""
        command = servers.of_python("mcp_server_time", "--local-timezone", "UTC")
        said = await self.called(command, "get_current_time", '{ timezone = "UTC" }')
        self.assertIn("UTC", said["text"])
