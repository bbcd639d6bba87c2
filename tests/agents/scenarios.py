"""What every agent comes through, each scenario a test: the model calls, the operator decides, the model is told."""

import json
from typing import Any

from tests.agents import case
from tests.functional.operated import GATED, SHIP, UNGATED

NOTE = {"channel": "#general", "summary": "Lunch."}


class ScenariosTestCase(case.AgentTestCase):
    """For a class that names its kind of agent."""

    async def test_01_ungated(self) -> None:
        """An ungated call runs at once, its result reaches the model, and its traffic went where its user wants it."""
        launched = await self.launch_agent([self.call(UNGATED, NOTE)])
        (result,) = await self.finished(launched)
        self.assertEqual(json.loads(result)["channel"], "C0001")
        self.assertEqual([each.text for each in self.workspace.messages], [NOTE["summary"]])
        (session,) = (await self.told("sessions", "list"))["items"]
        shown = await self.told("sessions", "show", session["id"])
        self.assertEqual(shown["gateway"]["requests"] > 0, self.kind.through_gateway)

    async def test_02_approved_in_time(self) -> None:
        """A gated call that is approved while the agent waits returns the action's own result."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assertEqual((approval["run"]["arguments"], self.workspace.requests), (SHIP, []))
        self.assert_no_secrets(launched)
        await self.approve(approval["id"])
        self.assert_shipped(await self.finished(launched))

    async def test_04_denied(self) -> None:
        """A denied call never leaves, and the model learns that it was denied, and why."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        await self.operator("approval", "deny", approval["id"], "--reason", "Not before the release notes are out.")
        (result,) = await self.finished(launched)
        self.assertIn("Not before the release notes are out.", result)
        self.assertIn("approval_denied", result)
        self.assertEqual(self.workspace.requests, [])

    def assert_shipped(self, results: list[str], **expected: Any) -> None:
        """The last result is the action's, and the message stands in the channel once."""
        self.assertEqual(json.loads(results[-1])["channel"], "C0002")
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])
        self.assertEqual(len(self.workspace.requests), 1)
