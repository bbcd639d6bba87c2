"""Claude Code through all scenarios, on a terminal, and behind walls."""

import json
import re

import attrs

from tests.agents import case, scenarios, surroundings
from tests.agents.kinds.claude import Claude
from tests.functional import tree
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.script import Say

_SUBSCRIPTION = "sk-ant-oat01-of-the-user"


class ClaudeTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Claude()


class TerminalTests(case.AgentTestCase):
    """Where a person sits."""

    kind = Claude()

    def launch_command(self, prompt: str) -> Command:
        """A session without a prompt, of a user who has been there before."""
        there = {"hasCompletedOnboarding": True, "projects": {str(self.home.project): {"hasTrustDialogAccepted": True}}}
        (self.home.user / ".claude.json").write_text(json.dumps(there))
        command = super().launch_command(prompt)
        headless = self.kind.arguments(prompt)
        environment = {name: text for name, text in command.environment.items() if name != "ANTHROPIC_API_KEY"}
        interactive = attrs.evolve(
            command,
            arguments=command.arguments[: -len(headless)],
            environment={**environment, "CLAUDE_CODE_OAUTH_TOKEN": _SUBSCRIPTION},
        )
        return surroundings.watched(interactive)

    async def test_terminal(self) -> None:
        """A call waits in its background, and wakes it; no line of ours is on its screen, which Ctrl-C ends cleanly."""
        launched = await self.launch_agent([self.call(GATED, SHIP), Say("It waits.")])
        await self.tools_there(launched)
        launched.running.press("tell the team")
        await self.pause(1)
        launched.running.press("\r")
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        await launched.running.expect("\x1b\\]9;a call waits for your approval", 10)
        await self.approve(approval["id"])
        await launched.running.expect(re.escape(case.BYE.split()[-1]), case.SECONDS)
        self.assertNotIn("aileron: a call waits", launched.running.output)
        launched.running.press("\x03")
        await self.pause(0.5)
        launched.running.press("\x03")
        finished = await launched.running.finish(30)
        self.assertEqual(finished.exit_code, 0)
        self.assertIn("as it was", finished.stdout[-100:])
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assertEqual({path: path.read_bytes() for path in launched.files}, launched.files)
        last = launched.llm.script.of(self.kind.model)[-1]
        self.assertIn("C0002", json.dumps(last.messages[-1]))
        self.assertEqual(last.headers["authorization"], f"Bearer {_SUBSCRIPTION}")
        self.assertNotIn("x-aileron-gateway-key", last.headers)

    async def tools_there(self, launched: case.Launched) -> None:
        """Wait until the tool server has asked the daemon for the actions, and a little longer."""
        pid = launched.running.pid

        def started() -> bool:
            return "aileron-mcp" in {member.program for member in tree.descendants(pid)}

        await until(self.reactor, started, case.SECONDS, "the tool server")
        await self.pause(5)


class SandboxTests(case.AgentTestCase):
    """C{aileron launch --sandbox}."""

    kind = Claude()

    def launch_command(self, prompt: str) -> Command:
        """The same behind walls."""
        return surroundings.walled(super().launch_command(prompt))

    async def test_sandbox(self) -> None:
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
