"""OpenCode's own permission prompts in the inbox."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents import case
from tests.agents.kinds.opencode import OpenCode
from tests.agents.permissions import prompts
from tests.functional import opencode
from tests.functional.home import Home
from tests.functional.reactor import until

_RULES = """\
prompts:
  rules:
    - {deny: Bash(rm *), reason: Use git rm.}
    - ask: Bash(git push *)
"""
_DIALOG = "Permission required"


class AskingOpenCode(OpenCode):
    """Its user has it ask before it runs a command."""

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        text = f'{{"model": "openai/{self.model}", "permission": {{"bash": "ask"}}}}'
        return (opencode.configure_user(home, text),)


class TerminalTests(prompts.TalkTestCase):
    """Where a person sits, and its own dialog is open beside the inbox."""

    kind = AskingOpenCode()

    async def asked(self) -> tuple[case.Launched, Mapping[str, Any]]:
        """The model wants to run a command; the dialog is on the screen, and the prompt in the inbox."""
        launched = await self.converse([self.writing()])
        await launched.running.expect(self.kind.ready, case.SECONDS)
        await self.type(launched, case.PROMPT)
        (ask,) = await self.asks()
        await self.shown(launched, _DIALOG)
        return launched, ask

    async def shown(self, launched: case.Launched, words: str) -> None:
        """Wait until these words stand on its screen."""
        await until(self.reactor, lambda: words in launched.running.screen, 30, repr(words))

    async def test_allowed(self) -> None:
        """An answer in the inbox closes the dialog, and the command runs."""
        launched, ask = await self.asked()
        self.assertEqual((ask["agent"], ask["tool"]), ("opencode", "bash"))
        await self.operator("ask", "allow", ask["id"])
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())
        self.assertEqual(await self.types(), ["ask.requested", "ask.allowed"])
        await self.left(launched)

    async def test_denied(self) -> None:
        """A denial reaches the model with its reason."""
        launched, ask = await self.asked()
        await self.operator("ask", "deny", ask["id"], "--reason", prompts.REASON)
        await self.shown(launched, case.BYE)
        self.assertIn(prompts.REASON, self.results(launched)[-1])
        self.assertFalse(self.mark.exists())
        await self.left(launched)

    async def test_in_terminal(self) -> None:
        """An answer in the dialog closes the prompt in the inbox."""
        launched, _ = await self.asked()
        await self.pause(1)
        launched.running.press("\r")
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())
        self.assertEqual(await self.types(), ["ask.requested", "ask.answered_in_terminal"])
        await self.left(launched)


class SandboxTerminalTests(prompts.SandboxTalkTestCase, TerminalTests):
    """The same in a sandbox."""


class RulesTests(prompts.PromptsTestCase):
    """Headless, where rules alone apply."""

    kind = OpenCode()
    options = ()
    config = _RULES

    async def test_rules(self) -> None:
        """A rule denies, another asks in the inbox, and what none is about runs."""
        turns = [
            self.calls(self.kind.run_in_shell("rm -f x")),
            self.calls(self.kind.run_in_shell("git push nowhere")),
            self.writing(),
        ]
        launched = await self.launch_agent(turns)
        (ask,) = await self.asks()
        await self.operator("ask", "deny", ask["id"], "--reason", prompts.REASON)
        results = await self.finished(launched)
        self.assertIn("Use git rm.", results[0])
        self.assertIn(prompts.REASON, results[1])
        self.assertTrue(self.mark.exists())


class SandboxTests(prompts.SandboxTestCase, RulesTests):
    """The same in a sandbox."""


class EgressTests(prompts.SandboxTestCase, RulesTests):
    """The same in a sandbox whose programs go through a proxy."""

    ways = ("--egress", "npm")
