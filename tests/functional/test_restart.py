"""What a killed daemon leaves: approvals that still wait, effects that nobody repeats, and a file edited meanwhile."""

import json
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional import slack
from tests.functional.operated import GATED, SHIP, AgentSession, OperatedTestCase, kinds

OTHER = {"channel": "#general", "summary": "Lunch."}


class KilledWhilePendingTests(OperatedTestCase):
    """``kill -9`` while two agents wait for a decision."""

    async def test_waits_survive(self) -> None:
        """A held call of an agent and a poll of another one outlive the daemon, and each effect happens once."""
        await self.furnish()
        agent = await self.mcp(await self.session(), wait_seconds=120)
        call = Deferred.fromCoroutine(agent.call("ship_update", SHIP, 150))
        (held,) = await self.waiting()
        session = await self.session()
        asked = (await self.run_action(session, GATED, OTHER)).body["approval_id"]
        poll = await self.poll(session, asked)
        before = await self.waits()
        await self.kill_daemon()
        self.assertFalse(poll.called or call.called)
        await self.unlock()
        self.assertEqual(await self.waits(), before)
        for approval_id in (asked, held["id"]):
            await self.approve(approval_id)
        self.assertIn("status: completed", (await poll).text)
        self.assertEqual(json.loads((await call).text)["channel"], "C0002")
        self.assertEqual(sorted(each.text for each in self.workspace.messages), [OTHER["summary"], SHIP["summary"]])
        self.assertEqual(len(self.workspace.requests), 2)

    async def waits(self) -> dict[str, Any]:
        """Both that wait, by their numbers; their pages have another address after each start."""
        return {each["id"]: {**each, "review_url": ""} for each in await self.waiting(2)}

    async def poll(self, session: AgentSession, approval_id: str) -> Deferred[Any]:
        """A started wait for the outcome, over MCP."""
        client = await self.mcp(session, wait_seconds=120)
        arguments = {"approval_id": approval_id, "wait_seconds": 120}
        poll = Deferred.fromCoroutine(client.call("check_action_status", arguments, 150))
        await self.pause(1)
        self.assertFalse(poll.called)
        return poll


class KilledUnderWayTests(OperatedTestCase):
    """``kill -9`` after the request left and before its answer came."""

    async def test_unknown(self) -> None:
        """Such a run is told as unknown, never done again by itself, and settled by the operator once."""
        await self.furnish()
        self.workspace.hides = True
        self.workspace.next = [slack.hang(applied=True)] * 2
        session = await self.session()
        runs = [await self.begun(session) for _ in range(2)]
        await self.kill_daemon()
        await self.unlock()
        await self.assert_in_doubt(session, runs)
        await self.pause(3)
        self.assertEqual(self.workspace.posts(), 2)
        await self.assert_settled(session, *runs)

    async def begun(self, session: AgentSession) -> str:
        """A run whose effect has happened and whose answer does not come."""
        sent = len(self.workspace.messages)
        run_id: str = (await self.run_action(session, GATED)).body["run_id"]
        await self.approve(run_id, "--wait", "0")
        await self.posted(sent + 1)
        return run_id

    async def assert_in_doubt(self, session: AgentSession, runs: list[str]) -> None:
        """To the operator and to the agent."""
        listed = (await self.told("runs", "list", "--state", "unknown"))["items"]
        self.assertEqual(sorted(each["id"] for each in listed), sorted(runs))
        told = (await self.result(session, runs[0])).body
        self.assertEqual((told["status"], told["failure"]["class"]), ("unknown", "outcome_unknown"))
        again = await self.operator("approval", "approve", runs[0], "--yes", code=1)
        self.assertIn("Already unknown", again.stderr)

    async def assert_settled(self, session: AgentSession, happened: str, did_not: str) -> None:
        """Each as the operator found it, once, with a note, and no third request."""
        await self.operator("runs", "settle", happened, "--happened", "--note", "It stands in the channel.")
        await self.operator("runs", "settle", did_not, "--did-not-happen", "--note", "I took it down.")
        await self.operator("runs", "settle", did_not, "--happened", code=1)
        self.assertEqual((await self.result(session, happened)).body["status"], "completed")
        self.assertEqual((await self.result(session, did_not)).body["status"], "failed")
        record = await self.audit("--run", happened)
        self.assertEqual(
            [each for each in kinds(record) if each != "execution.reconciled"][-2:],
            ["execution.unknown", "run.settled"],
        )
        self.assertEqual(self.workspace.posts(), 2)
