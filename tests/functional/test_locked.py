"""A locked vault: what an agent is offered, what it is told, and that work goes on after the unlocking."""

from tests.functional.operated import GATED, UNGATED, OperatedTestCase
from tests.functional.reactor import until

OWN_TOOLS = ["aileron_diagnostics", "check_action_status"]
ACTION_TOOLS = ["post_note", "ship_update"]


class StartedLockedTests(OperatedTestCase):
    """A daemon that never had the key in this life."""

    async def test_offers_nothing(self) -> None:
        """Only our own tools are offered, and say what to do; the actions come by themselves when it is unlocked."""
        await self.furnish()
        session = await self.session()
        await self.command("daemon", "stop")
        await self.command("daemon", "start", "--locked")
        client = await self.mcp(session)
        self.assertEqual(await client.tools(), OWN_TOOLS)
        told = await client.call("aileron_diagnostics", {})
        self.assertIn("aileron vault unlock", told.text)
        self.assertEqual((await self.run_action(session, UNGATED)).status, 423)
        asked = await self.run_action(session, GATED)
        self.assertEqual(asked.status, 202)
        self.assertIn(asked.body["approval_id"], (await self.operator("approval", "list")).stdout)
        refused = await self.operator("approval", "approve", asked.body["approval_id"], "--yes", code=1)
        self.assertIn("locked", refused.stderr)
        await self.unlock()
        changed = "notifications/tools/list_changed"
        heard = lambda: changed in [message.get("method") for message in client.server.messages]  # noqa: E731
        await until(self.reactor, heard, 30, "the change of the list")
        self.assertEqual(await client.tools(), [*ACTION_TOOLS, *OWN_TOOLS])
        self.assertEqual(self.workspace.requests, [])
        (approval,) = await self.waiting()
        self.assertEqual((approval["id"], approval["stale"]), (asked.body["approval_id"], None))
        await self.approve(approval["id"])
        self.assertEqual(len(self.workspace.messages), 1)
