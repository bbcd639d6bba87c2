"""The main job with the real agent in a sandbox."""

from __future__ import annotations

import json

import attrs

from tests.extent import seldom
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.operated import SHIP
from tests.functional.script import Call, Say

MODEL = "gpt-5.1"


class SandboxTests(GatewayedTestCase):
    """C{aileron launch --sandbox opencode}."""

    @seldom  # with a way out beside it in test_egress; what a plain sandbox lets a program do in tests.attacks
    async def test_main_job(self) -> None:
        """The agent thinks through the gateway and asks for an action, which runs when it is approved.

        What its provider would run itself is noted for its session, and it is told so.
        """
        llm = self.llm({MODEL: [Call("_ship_update", SHIP), Say("all done")]})
        self.use_upstream(llm)
        await self.furnish()
        self.configure_agent(f"openai/{MODEL}")
        command = self.launched(OPENAI_API_KEY="sk-not-a-key")
        place = command.arguments.index("launch") + 1
        walled = (*command.arguments[:place], "--sandbox", *command.arguments[place:])
        agent = self.start(attrs.evolve(command, arguments=walled))
        (approval,) = await self.waiting()
        await self.approve(approval["id"])
        finished = await agent.finish(90)
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        self.assertIn("all done", finished.stdout)
        self.assertIn("the gateway notes tools that the provider runs itself", finished.stderr)
        (session,) = json.loads((await self.operator("sessions", "list", "--json")).stdout)["items"]
        self.assertTrue(session["notes_tools"])
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])
