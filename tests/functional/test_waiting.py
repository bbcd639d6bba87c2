"""The installed ``aileron-mcp`` between a real daemon and clients of several kinds, while a person takes their time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional.mcp_client import CLIENT, McpClient
from tests.functional.operated import SHIP, OperatedTestCase
from tests.functional.reactor import Patience, until

TOOL, TAKEN_BACK = "ship_update", "take_back"
ABLE = {
    **CLIENT,
    "clientInfo": {"name": "claude-code", "version": "2"},
    "capabilities": {"elicitation": {"form": {}, "url": {}}},
}
TASKS = "io.modelcontextprotocol/tasks"


def modern(**params: Any) -> Mapping[str, Any]:
    """The parameters of a request without a handshake, by a client that knows tasks."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
    }
    return {**params, "_meta": meta}


class WaitingTests(OperatedTestCase):
    """What happens between a call and its decision."""

    async def test_review_page(self) -> None:
        """A client with a person before it is asked to open the page; that is no approval; the decision ends it."""
        await self.furnish()
        session = await self.session()
        client = await self.mcp(session, hello=ABLE, AILERON_CLIENT="claude", AILERON_ATTENDED="yes")
        await client.tools()
        calling = Deferred.fromCoroutine(client.call(TOOL, SHIP))
        server = client.server
        await until(self.reactor, lambda: bool(server.heard("elicitation/create")), 30, "the question")
        [asked] = server.heard("elicitation/create")
        (approval,) = await self.waiting()
        self.assertEqual(asked["params"]["url"], approval["review_url"])
        server.reply(asked["id"], {"action": "accept"})
        await self.pause(1)
        self.assertFalse(calling.called)
        self.assertEqual(await self.pending(), 1)
        await self.approve(approval["id"])
        told = await calling
        self.assertFalse(told.is_error)
        over = "notifications/elicitation/complete"
        await until(self.reactor, lambda: bool(server.heard(over)), 30, "that it is over")
        self.assertEqual(len(self.workspace.messages), 1)

    async def test_nobody_there(self) -> None:
        """Without a person the same client is asked nothing, hears of it five times in 15 s, and then that it waits."""
        await self.furnish()
        session = await self.session()
        client = await self.mcp(session, 18, ABLE, AILERON_CLIENT="claude", AILERON_ATTENDED="no")
        await client.tools()
        params = {"name": TOOL, "arguments": SHIP, "_meta": {"progressToken": "P"}}
        result = await client.ask("tools/call", params, 60)
        self.assertIn("waits for the user's approval", result["content"][0]["text"])
        self.assertEqual(client.server.heard("elicitation/create"), [])
        progress = client.server.heard("notifications/progress")
        self.assertEqual([each["params"]["progressToken"] for each in progress], ["P"] * 5)

    async def test_cancelled(self) -> None:
        """What is cancelled is taken back where its action says so; elsewhere, or once it was answered, it waits on."""
        await self.furnish()
        await self.add(self._withdrawn_on_cancel())
        session = await self.session()
        client = await self.mcp(session)
        await client.tools()
        for tool, left in [(TAKEN_BACK, 0), (TOOL, 1)]:
            number = self._call_and_leave(client, tool)
            await self.waiting()
            client.server.send("notifications/cancelled", {"requestId": number})
            patience = Patience(self.reactor, 1 if left else 30)
            while await self.pending() != 0 and not patience.is_over:
                await self.pause(0.1)
            self.assertEqual(await self.pending(), left)
        hasty = await self.mcp(session, wait_seconds=0)
        await hasty.tools()
        await hasty.call(TAKEN_BACK, SHIP)
        hasty.server.send("notifications/cancelled", {"requestId": hasty.asked})
        await hasty.call("aileron_diagnostics", {})
        self.assertEqual(await self.pending(), 2)

    async def test_client_gone(self) -> None:
        """A client that goes away takes nothing back, whatever the action says."""
        await self.furnish()
        await self.add(self._withdrawn_on_cancel())
        client = await self.mcp(await self.session())
        await client.tools()
        self._call_and_leave(client, TAKEN_BACK)
        await self.waiting()
        client.server.process.closeChildFD(0)
        await until(self.reactor, lambda: client.server.status is not None, 30, "the server's end")
        self.assertEqual(await self.pending(), 1)

    async def test_task(self) -> None:
        """A client that knows tasks gets one, which another server of the session knows, too, with its result."""
        await self.furnish()
        session = await self.session()
        client = await self.mcp(session, hello=None)
        await client.ask("tools/list", modern())
        task = await client.ask("tools/call", modern(name=TOOL, arguments=SHIP))
        self.assertEqual((task["resultType"], task["status"]), ("task", "working"))
        (approval,) = await self.waiting()
        self.assertEqual(approval["id"], task["taskId"])
        await self.approve(approval["id"])
        await self.posted()
        other = await self.mcp(session, hello=None)
        got = await other.ask("tasks/get", modern(taskId=task["taskId"]))
        self.assertEqual((got["status"], got["result"]["isError"]), ("completed", False))

    async def pending(self) -> int:
        """How many approvals wait."""
        return int((await self.status())["counts"]["pending_approvals"])

    def _withdrawn_on_cancel(self) -> Path:
        path = self.action_file("take-back", gated=True)
        text = path.read_text()
        path.write_text(text.replace("required = true\n", 'required = true\non_cancel = "withdraw"\n'))
        return path

    def _call_and_leave(self, client: McpClient, tool: str) -> int:
        """Send a call, and do not wait for its answer."""
        client.asked += 1
        client.server.send("tools/call", {"name": tool, "arguments": SHIP}, client.asked)
        return client.asked
