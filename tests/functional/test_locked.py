"""A locked vault: what an agent is offered, what it is told, and that work goes on after the unlocking."""

from twisted.internet.defer import Deferred

from tests.functional import slack
from tests.functional.operated import GATED, SHIP, UNGATED, AgentSession, OperatedTestCase, kinds
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
        refused = await self.operator("approval", "list", code=1)
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


class LockedLaterTests(OperatedTestCase):
    """A vault that is locked while agents work."""

    async def test_work_waits(self) -> None:
        """Ungated calls are refused without a row; a gated one can be asked for, and nothing is decided or sent."""
        await self.furnish()
        session = await self.session()
        token = await self.operator_token()
        client = await self.mcp(session, wait_seconds=0)
        await self.operator("vault", "lock")
        self.assertEqual(await client.tools(), [*ACTION_TOOLS, *OWN_TOOLS])
        ungated = await self.run_action(session, UNGATED)
        self.assertEqual((ungated.status, ungated.body["error"]["class"]), (423, "vault_locked"))
        told = await client.call("post_note", SHIP)
        self.assertIn("aileron vault unlock", told.text)
        self.assertTrue(told.is_error)
        asked = await self.run_action(session, GATED)
        self.assertEqual((asked.status, asked.body["status"]), (202, "pending_approval"))
        listing = await self.web.ask("GET", f"{self.home.discovery()['operator_url']}/v1/runs", token)
        self.assertEqual(listing.status, 401)
        self.assertEqual((await self.command("vault", "status")).stdout.strip(), "locked")
        await self.unlock()
        (approval,) = await self.waiting()
        self.assertEqual(approval["id"], asked.body["approval_id"])
        await self.approve(approval["id"])
        self.assertEqual(len((await self.told("runs", "list"))["items"]), 1)
        self.assertEqual(len(self.workspace.messages), 1)

    async def test_approved_then_locked(self) -> None:
        """What is approved while the vault is being locked waits for it, and runs once it is unlocked."""
        await self.furnish()
        session, token = await self.session(), await self.operator_token()
        self.workspace.next = [slack.Behaviour(held=True)]
        under_way, asked = [(await self.run_action(session, GATED)).body["approval_id"] for _ in range(2)]
        await self.decide(token, under_way)
        await self.posted()
        locking = Deferred.fromCoroutine(self.web.ask("POST", self.operator_url("vault/lock"), token, {}))
        await self.pause(0.5)
        await self.decide(token, asked)
        await self.told_to_wait(session, asked)
        self.workspace.release.callback(None)
        self.assertEqual((await locking).body, {"state": "locked"})
        self.assertEqual((await self.result(session, under_way)).body["status"], "completed")
        client = await self.mcp(session, wait_seconds=120)
        told = await client.call("check_action_status", {"approval_id": asked})
        self.assertIn("until the user unlocks the vault", told.text)
        asking = {"approval_id": asked, "wait_seconds": 120}
        poll = Deferred.fromCoroutine(client.call("check_action_status", asking, seconds=150))
        await self.unlock()
        told = await poll
        if "ask again later" in told.text:  # of a daemon that takes long to start
            told = await client.call("check_action_status", asking, seconds=150)
        self.assertIn("status: completed", told.text)
        self.assertEqual(len(self.workspace.messages), 2)
        told_by = kinds(await self.audit("--run", asked))
        self.assertEqual(told_by[1:4], ["approval.approved", "run.awaiting_vault", "run.resumed"])

    async def told_to_wait(self, session: AgentSession, approval_id: str) -> None:
        """Assert that an approved run soon waits for the vault."""
        for _ in range(50):
            status = (await self.result(session, approval_id)).body["status"]
            if status != "running":
                break
            await self.pause(0.1)
        self.assertEqual(status, "awaiting_vault")

    def operator_url(self, path: str) -> str:
        """A route of the operator site."""
        return f"{self.home.discovery()['operator_url']}/v1/{path}"

    async def decide(self, token: str, approval_id: str) -> None:
        """Approve what is there, faster than a command can."""
        url = self.operator_url(f"action-approvals/{approval_id}")
        digest = (await self.web.ask("GET", url, token)).body["digest"]
        reply = await self.web.ask("POST", f"{url}/decide", token, {"approved": True, "digest": digest})
        self.assertEqual(reply.status, 200, reply.text)
