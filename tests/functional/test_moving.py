"""Moving an MCP server that a real agent has written into its settings, which it still reads afterwards."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from tests.functional import notes_server, opencode
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command, Finished

TOKEN = "notes-canary-70311"
LIST_TOOLS = """+++
name = "list-tools"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/notes"
version = "1.0.0"
capabilities = ["list_tools"]

[[execute]]
id = "list"
connector = "local://me/notes"
op = "list_tools"

[approval]
required = true
+++
# List tools

Lists the tools of the server.
"""


class MoveTests(OperatedTestCase):
    """A user whose agent has a server of its own."""

    async def agent(self, *arguments: str) -> Finished:
        """What came of a command of OpenCode's, which must succeed."""
        environment = self.home.environment(**opencode.QUIET)
        program = (opencode.program(), "mcp", *arguments)
        command = Command(arguments=program, environment=environment, directory=self.home.project)
        return self._expect(await self.run_command(command, 60), 0)

    @property
    def settings(self) -> list[Path]:
        """The agent's own files."""
        return sorted((self.home.user / ".config" / "opencode").glob("opencode.json*"))

    async def test_moved(self) -> None:
        """The agent reads its settings without it, its secret is in the vault, and it is used behind an approval."""
        await self.operator("vault", "init")
        await self.agent("add", "notes", "--env", f"NOTES_TOKEN={TOKEN}", "--", sys.executable, notes_server.__file__)
        [path] = self.settings
        before = path.read_bytes()
        moved = await self.operator("import", "opencode", "--yes", "--write")
        self.assertNotIn("canary", moved.stdout + moved.stderr)
        self.assertNotIn("canary", path.read_text())
        [_, backup] = self.settings
        self.assertEqual((backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)), (before, 0o600))
        listed = await self.agent("list")
        self.assertNotIn("notes", listed.stdout + listed.stderr)
        again = await self.command("import", "opencode")
        self.assertIn("There is no server to move.", again.stdout)
        kept = [each for each in self.home.root.rglob("*") if each.is_file() and b"canary" in each.read_bytes()]
        self.assertEqual(kept, [backup])
        action = self.home.project / "list-tools.md"
        action.write_text(LIST_TOOLS)
        await self.add(action)
        session = await self.session()
        asked = await self.run_action(session, "list-tools", {})
        await self.approve(str(asked.body["run_id"]))
        result = await self.result(session, str(asked.body["run_id"]), 30)
        tools = result.body["result"]["output"]["tools"]
        self.assertEqual({each["name"] for each in tools}, {"add_note", "list_notes"}, result.text)
