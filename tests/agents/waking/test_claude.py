"""Claude Code is woken by late decisions."""

import attrs

from tests.agents import case, surroundings, test_claude
from tests.agents.kinds.claude import Claude
from tests.agents.waking import late
from tests.functional.process import Command


class TalkTestCase(test_claude.LoggedTestCase, late.LateTestCase):
    """Where a person sits."""

    kind = Claude()

    async def prompt(self, launched: case.Launched) -> None:
        """See the base class."""
        await self.listed()
        launched.running.press(case.PROMPT)
        await self.shown(launched, case.PROMPT)
        await self.pause(1)  # it takes no Enter that comes at once
        launched.running.press("\r")


class ClaudeTests(TalkTestCase, late.WakingTestCase):
    """By a hook, where it does not look for outcomes in its background by itself."""

    def conversation(self) -> Command:
        """The same without tasks of MCP."""
        command = super().conversation()
        return attrs.evolve(command, environment={**command.environment, "CLAUDE_CODE_DISABLE_MCP_TASKS": "1"})


class TaskTests(TalkTestCase):
    """Where it looks for outcomes in its background."""

    config = ""

    async def test_fetched(self) -> None:
        """What it has found by itself does not wake it a second time."""
        launched, approval = await self.begun()
        await self.approve(approval["id"])
        await self.shown(launched, case.BYE)
        await self.pause(8)
        self.assertEqual(await self.woken_by(), [])
        self.assertEqual(len(launched.llm.script.of(self.kind.model)), 3)
        await self.left(launched)


class ResumedTests(late.ResumedTestCase):
    """After it has ended."""

    kind = Claude()


class SandboxTests(ResumedTests):
    """The same in a sandbox."""

    def launch_command(self, prompt: str) -> Command:
        """See the base class."""
        return surroundings.walled(super().launch_command(prompt))
