"""Claude Code through all scenarios, and behind walls."""

import attrs

from tests.agents import case, scenarios
from tests.agents.kinds.claude import Claude
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command


class ClaudeTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Claude()


class SandboxTests(case.AgentTestCase):
    """C{aileron launch --sandbox}."""

    kind = Claude()

    def launch_command(self, prompt: str) -> Command:
        """The same behind walls."""
        command = super().launch_command(prompt)
        place = command.arguments.index("launch") + 1
        return attrs.evolve(command, arguments=(*command.arguments[:place], "--sandbox", *command.arguments[place:]))

    async def test_12_sandbox(self) -> None:
        """It thinks through the gateway and acts; its conversation stays, and nothing beside settings does."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        (approval,) = await self.waiting(seconds=case.SECONDS)
        await self.approve(approval["id"])
        (result,) = await self.finished(launched)
        self.assertIn("C0002", result)
        own = self.home.user / ".claude"
        self.assertEqual(len(list((own / "projects").glob("*/*.jsonl"))), 1)
        self.assertEqual([path.name for path in own.iterdir() if path.is_file()], ["settings.json"])
        self.assertFalse((self.home.user / ".claude.json").exists())
