"""What an agent's call leaves to the person: asked for by the client's form, reviewed like any argument, done once."""

from pathlib import Path

from tests.functional.mcp_client import CLIENT
from tests.functional.operated import GATED, SHIP, OperatedTestCase
from tests.functional.reactor import until

_LEFT_TO_THE_MODEL = 'description = "Channel name with the leading #"'
_LEFT_TO_THE_USER = 'description = "Where"\nenum = ["#general", "#engineering"]\nask = true'
_SHOWING = {**CLIENT, "capabilities": {"elicitation": {}}}
_SUMMARY = {"summary": SHIP["summary"]}


class FormTests(OperatedTestCase):
    """A client that shows forms, and one that does not."""

    def asking(self) -> Path:
        """The gated action, whose channel is for the person to say."""
        path = self.action_file(GATED, gated=True)
        path.write_text(path.read_text().replace(_LEFT_TO_THE_MODEL, _LEFT_TO_THE_USER))
        return path

    async def test_asked(self) -> None:
        """What the person fills in is what the operator reviews, and what is sent when they approve."""
        await self.furnish()
        await self.add(self.asking(), force=True)
        client = await self.mcp(await self.session(), hello=_SHOWING)
        [tool] = [each for each in (await client.ask("tools/list"))["tools"] if each["name"] == "ship_update"]
        self.assertEqual(tool["inputSchema"]["required"], ["summary"])
        client.asked += 1
        client.server.send("tools/call", {"name": "ship_update", "arguments": _SUMMARY}, client.asked)
        await until(self.reactor, lambda: bool(client.server.heard("elicitation/create")), 30, "a form")
        [form] = client.server.heard("elicitation/create")
        self.assertEqual(list(form["params"]["requestedSchema"]["properties"]), ["channel"])
        self.assertEqual((await self.status())["counts"]["pending_approvals"], 0)
        client.server.reply(form["id"], {"action": "accept", "content": {"channel": SHIP["channel"]}})
        [approval] = await self.waiting()
        self.assertEqual(approval["run"]["arguments"], SHIP)
        await self.approve(approval["id"])
        await until(self.reactor, lambda: client.server.answer(client.asked) is not None, 30, "the result")
        await self.posted()
        self.assertEqual([(each.channel, each.text) for each in self.workspace.messages], [("C0002", SHIP["summary"])])
