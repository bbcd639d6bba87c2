"""What a killed daemon leaves: approvals that still wait, effects that nobody repeats, and a file edited meanwhile."""

import json
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional import opencode, slack
from tests.functional.operated import GATED, SHIP, AgentSession, OperatedTestCase, kinds
from tests.functional.reactor import Patience
from tests.functional.script import Call, Say

OTHER = {"channel": "#general", "summary": "Lunch."}


class KilledWhilePendingTests(OperatedTestCase):
    """``kill -9`` while two agents wait for a decision."""

    async def test_waits_survive(self) -> None:
        """A held call of real OpenCode and a poll of another agent outlive the daemon, and each effect happens once."""
        await self.furnish()
        llm = self.llm([Call("_ship_update", SHIP), Say("all done")])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch()
        (held,) = await self.waiting()
        session = await self.session()
        asked = (await self.run_action(session, GATED, OTHER)).body["approval_id"]
        poll = await self.poll(session, asked)
        before = {each["id"]: each for each in await self.waiting(2)}
        await self.kill_daemon()
        self.assertFalse(poll.called)
        await self.unlock()
        self.assertEqual({each["id"]: each for each in await self.waiting(2)}, before)
        for approval_id in (asked, held["id"]):
            await self.approve(approval_id)
        told = await poll
        self.assertIn("status: completed", told.text)
        finished = await agent.finish(60)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["all done"]))
        (result,) = llm.script.received[1].tool_results
        self.assertEqual(json.loads(result)["channel"], "C0002")
        self.assertEqual(sorted(each.text for each in self.workspace.messages), [OTHER["summary"], SHIP["summary"]])
        self.assertEqual(len(self.workspace.requests), 2)

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

    async def test_found(self) -> None:
        """Where the service tells what stands there, such a run is found by its key, and is complete; done once."""
        await self.furnish()
        self.workspace.next = [slack.hang(applied=True)]
        session = await self.session()
        run_id = await self.begun(session)
        await self.kill_daemon()
        await self.unlock()
        self.assertIn((await self.result(session, run_id)).body["status"], ("unknown", "completed"))
        told = await self.found(session, run_id)
        (message,) = self.workspace.messages
        self.assertEqual((told["status"], told["result"]["output"]), ("completed", {"ts": message.ts}))
        self.assertEqual(self.workspace.posts(), 1)
        record = await self.audit("--run", run_id)
        self.assertEqual(kinds(record)[-2:], ["execution.unknown", "execution.reconciled"])

    async def found(self, session: AgentSession, run_id: str) -> Mapping[str, Any]:
        """What is told of it once the service was asked, which is a moment after the daemon's start."""
        patience = Patience(self.reactor, 60)
        while (told := (await self.result(session, run_id)).body)["status"] == "unknown":
            self.assertFalse(patience.is_over, told)
            await self.pause(0.2)
        return told

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
        self.assertIn("unknown already", again.stderr)

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


class EditedTests(OperatedTestCase):
    """The action file changes while an approval waits."""

    async def test_stale(self) -> None:
        """The old digest is refused, the approval asked anew with the reason, and what runs is the new text."""
        await self.furnish()
        session = await self.session()
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        (shown,) = await self.waiting()
        await self.add(self.action_file(GATED, gated=True, before="Shipped: "), force=True)
        refused = await self.decide(await self.operator_token(), asked, shown["digest"])
        self.assertEqual((refused["class"], refused["details"]["digest"] == shown["digest"]), ("approval_stale", False))
        await self.operator("approval", "approve", asked, "--yes", "--digest", shown["digest"], code=1)
        self.assertEqual(self.workspace.requests, [])
        (anew,) = await self.waiting()
        self.assertEqual((anew["id"], anew["stale"]), (asked, f"The action {GATED} was changed since."))
        await self.approve(asked, "--digest", anew["digest"])
        self.assertEqual([each.text for each in self.workspace.messages], [f"Shipped: {SHIP['summary']}"])
        self.assertIn("approval.stale", kinds(await self.audit("--run", asked)))

    async def decide(self, token: str, approval_id: str, digest: str) -> Mapping[str, Any]:
        """Approve by that digest at the daemon itself, which refuses."""
        url = f"{self.home.discovery()['operator_url']}/v1/action-approvals/{approval_id}/decide"
        reply = await self.web.ask("POST", url, token, {"approved": True, "digest": digest})
        self.assertEqual(reply.status, 409)
        error: Mapping[str, Any] = reply.body["error"]
        return error
