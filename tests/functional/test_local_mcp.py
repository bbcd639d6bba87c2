"""A local MCP server behind approval: from an agent's call to what the program did, and what becomes of the program."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.extent import seldom
from tests.functional import notes_server, opencode
from tests.functional.operated import PASSPHRASE, AgentSession, OperatedTestCase
from tests.functional.reactor import until
from tests.functional.script import Call, Say

TOKEN = "notes-canary-90210"
NAME = "local://me/notes"
CONNECTOR = """
[connector]
name = "local://me/notes"
version = "1.0.0"
kind = "mcp"

[mcp]
command = ["{python}", "{server}"]
directory = "{directory}"

[credential]
kind = "api_key"
variable = "NOTES_TOKEN"
readable_by = "the program and everything that it starts"
"""


class LocalMcpTests(OperatedTestCase):
    """A daemon with a connector to the server, and two actions that use it."""

    def setUp(self) -> None:
        super().setUp()
        self.directory = self.home.project / "notes"
        self.directory.mkdir()

    async def ready(self) -> AgentSession:
        """Import the server's tools, as a user does; an agent's session."""
        connector = self.home.project / "notes.toml"
        connector.write_text(
            CONNECTOR.format(python=sys.executable, server=notes_server.__file__, directory=self.directory)
        )
        await self.operator("vault", "init")
        await self.operator("connector", "add", str(connector), "--yes")
        await self.import_tools()  # which writes the action that lists them
        await self.add(self.home.project / "notes-list-tools.md")
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": TOKEN}
        setup = ("binding", "setup", NAME)
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        await self.import_tools("--op", "add_note", "--op", "list_notes", "--read", "list_notes", "--force")
        await self.operator("connector", "add", str(connector), "--force", "--yes")
        await self.add(self.home.project / "notes-add-note.md", self.home.project / "notes-list-notes.md")
        return await self.session()

    async def import_tools(self, *arguments: str, code: int = 0) -> None:
        """Import tools into the project."""
        await self.command("connector", "import", NAME, *arguments, "--output", str(self.home.project), code=code)

    async def add_note(self, session: AgentSession, text: str, code: int = 0) -> Mapping[str, Any]:
        """Ask for a note, approve it, and see how that ended."""
        asked = await self.run_action(session, "notes-add-note", {"text": text})
        self.assertEqual(asked.status, 202, asked.text)
        run_id = str(asked.body["run_id"])
        shown = json.dumps(await self.told("approval", "show", run_id))
        for words in (
            "in the variable NOTES_TOKEN",
            "everything that it starts can read it",
            "add_note",
            str(self.directory),
        ):
            self.assertIn(words, shown)
        await self.approve(run_id, code=code)
        return dict((await self.result(session, run_id, 20)).body)

    def processes(self) -> list[int]:
        """The processes that run this test's server."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            try:
                argv, directory = (each / "cmdline").read_bytes().split(b"\0"), (each / "cwd").readlink()
            except OSError:
                continue
            if argv[1:2] == [notes_server.__file__.encode()] and directory == self.directory:
                found.append(int(each.name))
        return found

    def notes(self) -> str:
        """What the server has kept."""
        return (self.directory / notes_server.NOTES).read_text()

    async def test_calls(self) -> None:
        """Approved calls share one process; one that dies leaves its call unknown; the daemon takes it down at its end.

        The credential is in nothing that is kept or logged, although the server writes it to its standard error.
        """
        session = await self.ready()
        first, second = [await self.add_note(session, text) for text in ("one", "two")]
        self.assertEqual(first["result"]["output"], second["result"]["output"])
        self.assertEqual(self.notes(), "one\ntwo\n")
        (pid,) = self.processes()
        died = await self.add_note(session, "die", code=1)
        self.assertEqual(died["status"], "unknown", died)
        listed = await self.run_action(session, "notes-list-notes", {}, wait=30)
        self.assertEqual(listed.body["result"]["output"]["text"], "one\ntwo\n", listed.text)
        (another,) = self.processes()
        self.assertNotEqual(another, pid)
        await self.operator("vault", "lock")
        await until(self.reactor, lambda: not self.processes(), 10, "the end of the server that has a credential")
        log = "".join(path.read_text() for path in self.state.log.glob("aileron.log*"))
        self.assertIn("local://me/notes wrote: noted with [redacted]", log)
        self.assertIn("the server of local://me/notes ended with exit code 9", log)
        await self.command("daemon", "stop")
        await until(self.reactor, lambda: not self.processes(), 10, "the end of the server")
        files = [path for path in self.home.root.rglob("*") if path.is_file()]
        self.assertEqual([path for path in files if TOKEN.encode() in path.read_bytes()], [])

    @seldom
    async def test_killed_daemon(self) -> None:
        """Where the daemon is killed, the server reads the end of its input, and ends as well."""
        await self.ready()
        self.assertEqual(len(self.processes()), 1)
        await self.kill_daemon()
        await until(self.reactor, lambda: not self.processes(), 20, "the end of the server")

    @seldom
    async def test_agent(self) -> None:
        """A real agent calls a tool of the server, which waits for its approval, and is told what came of it."""
        await self.ready()
        llm = self.llm([Call("aileron_notes_add_note", {"text": "from an agent"}), Say("well")])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch()
        (approval,) = await self.waiting()
        self.assertFalse((self.directory / notes_server.NOTES).exists())
        await self.approve(approval["id"])
        finished = await agent.finish(60)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["well"]))
        self.assertEqual(self.notes(), "from an agent\n")
        self.assertIn("noted by", llm.script.received[-1].tool_results[0])
