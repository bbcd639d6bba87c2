"""Rules for pi, which has no permission prompts of its own."""

from tests.agents import case
from tests.agents.kinds.pi import Pi
from tests.agents.permissions import prompts
from tests.functional.reactor import until

_RULES = """\
prompts:
  rules:
    - {deny: Bash(rm *), reason: Use git rm.}
    - ask: Bash(git push *)
    - ask: Bash(echo *)
"""


class HeadlessTests(prompts.PromptsTestCase):
    """Headless, where a rule asks in the inbox alone."""

    kind = Pi()
    options = ()
    config = _RULES

    async def test_rules(self) -> None:
        """A rule denies, and another asks in the inbox."""
        turns = [
            self.calls(self.kind.run_in_shell("rm -f x")),
            self.calls(self.kind.run_in_shell("git push nowhere")),
            self.writing(),
        ]
        launched = await self.launch_agent(turns)
        (ask,) = await self.asks()
        self.assertEqual((ask["agent"], ask["text"]), ("pi", "git push nowhere"))
        await self.operator("ask", "deny", ask["id"], "--reason", prompts.REASON)
        (ask,) = await self.asks()
        await self.operator("ask", "allow", ask["id"])
        results = await self.finished(launched)
        self.assertIn("Use git rm.", results[0])
        self.assertIn(prompts.REASON, results[1])
        self.assertTrue(self.mark.exists())


class SandboxTests(prompts.SandboxTestCase, HeadlessTests):
    """The same in a sandbox."""


class EgressTests(prompts.SandboxTestCase, HeadlessTests):
    """The same in a sandbox whose programs go through a proxy."""

    ways = ("--egress", "npm")


class TerminalTests(prompts.TalkTestCase):
    """Where a person sits, a rule asks there and in the inbox."""

    kind = Pi()
    config = _RULES

    async def asked(self) -> case.Launched:
        """The model wants to run a command; the dialog is on the screen, and the prompt in the inbox."""
        launched = await self.converse([self.writing()])
        await launched.running.expect(self.kind.ready, case.SECONDS)
        await self.type(launched, case.PROMPT)
        await self.asks()
        await until(self.reactor, lambda: "Allow this call?" in launched.running.screen, 30, "the dialog")
        return launched

    async def test_in_inbox(self) -> None:
        """An answer in the inbox closes the dialog."""
        launched = await self.asked()
        (ask,) = await self.asks()
        await self.operator("ask", "allow", ask["id"])
        await until(self.reactor, lambda: case.BYE in launched.running.screen, 30, case.BYE)
        self.assertTrue(self.mark.exists())

    async def test_in_terminal(self) -> None:
        """An answer in the dialog withdraws the prompt from the inbox."""
        launched = await self.asked()
        await self.pause(1)
        launched.running.press("\r")
        await until(self.reactor, lambda: case.BYE in launched.running.screen, 30, case.BYE)
        self.assertTrue(self.mark.exists())
        self.assertEqual(await self.types(), ["ask.requested", "ask.withdrawn"])
