"""What a real agent gets of a launch and of wrong calls, beside a tool server of its user's own."""

import json
import sys
from typing import Any

from tests.functional import opencode, tree
from tests.functional.operated import PASSPHRASE, SHIP, OperatedTestCase
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


class LaunchedTests(OperatedTestCase):
    """An agent that waits for a decision, looked at from outside."""

    async def test_surroundings(self) -> None:
        """Agent and tool server get the session's token and no other credential; SIGTERM ends all and the session."""
        await self.furnish()
        llm = self.llm([Call("_ship_update", SHIP)])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch(MINE="kept", AILERON_URL="http://stale")
        (approval,) = await self.waiting()
        members = {member.program: member for member in tree.descendants(agent.pid)}
        self.assertEqual(set(members), {"opencode", "aileron-mcp"})
        self.assert_own_registration(members["opencode"])
        key = self.home.discovery()["launch_key"]
        for member in members.values():
            whole = json.dumps([member.arguments, dict(member.environment)])
            for secret in (PASSPHRASE, key, "ail_o_", "ail_l_", self.workspace.token):
                self.assertNotIn(secret, whole)
            self.assertNotIn("ail_a_", json.dumps(member.arguments))
            self.assertEqual(member.environment["MINE"], "kept")
        await agent.signal(seconds=15)
        self.assertEqual(list(tree.descendants(agent.pid)), [])
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assertEqual((await self.waiting())[0]["id"], approval["id"])

    def assert_own_registration(self, agent: tree.Member) -> None:
        """Nothing of ours stands in the agent's own environment but the registration."""
        ours = {name for name, text in agent.environment.items() if "ail_a_" in text or name.startswith("AILERON_")}
        self.assertEqual(ours, {"OPENCODE_CONFIG_CONTENT"})
        server = json.loads(agent.environment["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]
        said = {"URL", "TOKEN", "WAIT_SECONDS", "CLIENT", "ATTENDED"}
        self.assertEqual(set(server["environment"]), {f"AILERON_{name}" for name in said})
        self.assertEqual(server["environment"]["AILERON_URL"], self.home.discovery()["url"])
