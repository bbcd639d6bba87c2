"""Standing grants, with the installed commands, a real daemon and a real service."""

from tests.functional.operated import GATED, SHIP, AgentSession, OperatedTestCase, kinds
from tests.functional.web import Reply


class StandingGrantTests(OperatedTestCase):
    """What is approved once, and then allowed."""

    async def call(self, session: AgentSession, summary: str, channel: str = SHIP["channel"]) -> Reply:
        """The agent asks."""
        return await self.run_action(session, GATED, {"channel": channel, "summary": summary})

    async def test_granted(self) -> None:
        """Calls like the approved one are done at once until it is revoked; others wait, through lives and changes."""
        await self.furnish()
        session = await self.session()
        first = await self.call(session, "one")
        made = await self.approve(first.body["approval_id"], "--grant", "--uses", "9", "--allow", "summary=any")
        self.assertIn("Granted: ", made.stdout)
        (grant,) = (await self.told("grant", "list"))["items"]
        second = await self.call(session, "two")
        self.assertEqual((second.status, second.body["reason"]), (200, "Allowed by a standing grant."))
        self.assertEqual((await self.call(session, "two", "#general")).status, 202)
        self.assertEqual((await self.call(await self.session(), "two")).status, 202)
        await self.kill_daemon()
        await self.unlock()
        self.assertEqual((await self.call(session, "three")).status, 200)
        shown = await self.told("grant", "show", grant["id"])
        self.assertEqual((shown["left"], shown["state"], shown["suspended"]), (7, "live", None))
        await self.operator("grant", "revoke", grant["id"])
        self.assertEqual((await self.call(session, "four")).status, 202)
        self.assertEqual([each.text for each in self.workspace.messages], ["one", "two", "three"])
        used = kinds(await self.audit("--run", second.body["run_id"]))
        self.assertIn("grant.used", used)

    async def test_suspended(self) -> None:
        """A grant allows nothing once the action's file is another, though the operator trusts that too."""
        await self.furnish()
        session = await self.session()
        first = await self.call(session, "one")
        await self.approve(first.body["approval_id"], "--grant", "--uses", "9", "--allow", "summary=any")
        await self.add(self.action_file(GATED, gated=True, before="NEWS: "), force=True)
        self.assertEqual((await self.call(session, "two")).status, 202)
        (grant,) = (await self.told("grant", "list"))["items"]
        self.assertIn("the action's file", grant["suspended"])
