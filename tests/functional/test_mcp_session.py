"""One session of a real agent that uses three real MCP servers of others, each call approved."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.extent import seldom
from tests.functional import opencode, servers
from tests.functional.operated import OperatedTestCase
from tests.functional.ports import another_port
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.script import Call, Say

_LOCAL = """
[connector]
name = "local://me/{name}"
version = "1.0.0"
kind = "mcp"

[mcp]
command = {command}
directory = "{directory}"
"""


class McpSessionTests(OperatedTestCase):
    """OpenCode with a server over HTTP, one of npm's in the sandbox, and one of PyPI's there."""

    timeout = 600

    async def serve(self) -> str:
        """Start the server over HTTP; its URL."""
        port = another_port()
        arguments = servers.of_node(servers.EVERYTHING, "streamableHttp")
        environment = {**self.home.environment(), "PORT": str(port), "PATH": os.environ["PATH"]}
        running = self.start(Command(arguments=arguments, environment=environment, directory=self.home.project))
        await until(self.reactor, lambda: self._listens(port), 60, f"the server: {running!r}")
        return f"http://127.0.0.1:{port}/mcp"

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as there:
            return there.connect_ex(("127.0.0.1", port)) == 0

    async def connect(self, name: str, tool: str) -> None:
        """Add the connector that lies in the project, and import one of its tools, as a user does."""
        connector, output = self.home.project / f"{name}.toml", ("--output", str(self.home.project))
        import_ = ("connector", "import", f"local://me/{name}", *output)
        await self.operator("connector", "add", str(connector), "--yes")
        listing = self.home.project / f"{name}-list-tools.md"
        if not listing.exists():
            await self.command(*import_)
        await self.add(listing)
        await self.command(*import_, "--op", tool, "--force")
        await self.operator("connector", "add", str(connector), "--force", "--yes")
        await self.add(self.home.project / f"{name}-{tool.replace('_', '-')}.md")

    async def connect_local(self, name: str, command: Sequence[str], tool: str) -> Path:
        """The same for a program, which works in a directory of its own."""
        directory = self.home.project / f"of-{name}"
        directory.mkdir()
        text = _LOCAL.format(name=name, command=json.dumps([*command]), directory=directory)
        (self.home.project / f"{name}.toml").write_text(text)
        await self.connect(name, tool)
        return directory

    @seldom
    async def test_each_approved(self) -> None:
        """Nothing is called before it is approved; then each is called once, and the agent reads what it answered."""
        await self.operator("vault", "init")
        url = await self.serve()
        project = ("--output", str(self.home.project))
        await self.command("connector", "import", url, "--mcp", "--name", "local://me/everything", *project)
        await self.connect("everything", "get_sum")
        given = str(self.home.project / "of-files")
        directory = await self.connect_local("files", servers.of_node(servers.FILES, given), "write_file")
        await self.connect_local("clock", servers.of_python("mcp_server_time"), "get_current_time")
        note = directory / "note.txt"
        calls = [
            Call("aileron_everything_get_sum", {"a": 40, "b": 2}),
            Call("aileron_files_write_file", {"path": str(note), "content": "from an agent"}),
            Call("aileron_clock_get_current_time", {"timezone": "Asia/Tokyo"}),
        ]
        llm = self.llm([*calls, Say("all done")])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch()
        for shown, written in ((url, False), (given, False), ("mcp_server_time", True)):
            (approval,) = await self.waiting(seconds=120)
            self.assertIn(shown, json.dumps(await self.told("approval", "show", str(approval["id"]))))
            self.assertEqual(note.exists(), written)
            await self.approve(str(approval["id"]))
        finished = await agent.finish(150)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["all done"]))
        self.assertEqual(note.read_text(), "from an agent")
        added, wrote, told = llm.script.received[-1].tool_results
        self.assertIn("42", added)
        self.assertIn("note.txt", wrote)
        self.assertIn("+09:00", told)
