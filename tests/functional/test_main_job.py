"""The main job: a real agent's call is asked for, decided, carried out with a key it never sees, and recorded."""

import json
from typing import Any

from tests.functional import opencode
from tests.functional.operated import CONNECTOR, GATED, SHIP, OperatedTestCase, kinds
from tests.functional.script import Call, Say

STORY = [
    "approval.requested",
    "approval.approved",
    "execution.started",
    "execution.succeeded",
]


class MainJobTests(OperatedTestCase):
    """Real OpenCode, launched; the operator on the command line."""

    async def test_approved(self) -> None:
        """An approved call leaves once with the bound key, its result reaches the model, and all is on record."""
        await self.furnish()
        llm = self.llm([Call("_ship_update", SHIP), Say("all done")])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch()
        (approval,) = await self.waiting()
        self.assertEqual(self.workspace.requests, [])
        self.assertEqual(approval["run"]["arguments"], SHIP)
        await self.approve(approval["id"])
        finished = await agent.finish(60)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["all done"]))
        self.assert_left_once()
        self.assert_model_was_told(llm.script.received[1].tool_results)
        await self.assert_recorded(approval)

    def assert_left_once(self) -> None:
        """One request with the key, one message."""
        (request,) = self.workspace.requests
        self.assertEqual(request.headers["authorization"], f"Bearer {self.workspace.token}")
        self.assertEqual((request.body["channel"], request.body["text"]), (SHIP["channel"], SHIP["summary"]))
        self.assertEqual(self.workspace.effects_of(request.body["client_msg_id"]), 1)

    def assert_model_was_told(self, results: list[str]) -> None:
        """The action's own result, and no more."""
        (message,) = self.workspace.messages
        self.assertEqual([json.loads(result) for result in results], [{"ts": message.ts, "channel": message.channel}])

    async def assert_recorded(self, approval: Any) -> None:
        """The run's story in order, who decided, and a session that has ended with the agent's exit code."""
        record = await self.audit()
        run = [each for each in record if each["run_id"] == approval["id"]]
        self.assertEqual(kinds(run), STORY)
        self.assertEqual([each["actor"]["type"] for each in run][:2], ["agent", "human"])
        self.assertEqual({each["action"] for each in run}, {GATED})
        self.assertEqual({each["connector"] for each in run if each["type"].startswith("execution")}, {CONNECTOR})
        (ended,) = [each for each in record if each["type"] == "session.ended"]
        self.assertEqual(ended["session_id"], approval["run"]["session_id"])
        self.assertEqual(ended["payload"]["exit_code"], 0)
