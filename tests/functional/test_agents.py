"""What a real agent is told of wrong calls, beside a tool server of its user's own."""

import json
import sys
from typing import Any

from tests.functional import opencode
from tests.functional.operated import SHIP, OperatedTestCase
from tests.functional.script import Call, Say

NOTE = {"channel": "#general", "summary": "Lunch."}
WRONG = {"channel": 5, "sumary": "oops"}
# A tool server of the user's own, with a tool of the same name as ours.
_OWN_SERVER = """
from mcp.server import MCPServer

server = MCPServer("own")

@server.tool()
def ship_update(channel: str, summary: str) -> str:
    return f"mine, for {channel}"

server.run()
"""


def own_server() -> dict[str, Any]:
    """Return its entry in the configuration of the agent."""
    return {"mine": opencode.stdio_server([sys.executable, "-c", _OWN_SERVER], {})}


class ConversationTests(OperatedTestCase):
    """One long conversation of one agent."""

    async def test_conversation(self) -> None:
        """Wrong arguments are named one by one, an ungated action runs at once, and the user's own server is there."""
        await self.furnish()
        llm = self.llm(
            [Call("aileron_ship_update", WRONG), Call("_post_note", NOTE), Call("mine_ship_update", SHIP), Say("well")]
        )
        path = opencode.configure_user(self.home, opencode.configuration(llm.url, own_server()))
        before = path.read_bytes()
        finished = await self.run_command(self.launched())
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["well"]))
        wrong, note, mine = llm.script.received[-1].tool_results
        for named in ("- channel:", "- summary:", "- sumary:", "invalid_request"):
            self.assertIn(named, wrong)
        self.assertEqual(json.loads(note)["channel"], "C0001")
        self.assertIn("mine, for #engineering", mine)
        (request,) = self.workspace.requests
        self.assertEqual((request.body["channel"], request.body["text"]), ("#general", "Lunch."))
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual([each["state"] for each in (await self.told("runs", "list"))["items"]], ["completed"])
