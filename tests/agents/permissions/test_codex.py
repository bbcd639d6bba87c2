"""Codex's own permission prompts in the inbox."""

import attrs

from tests.agents import case
from tests.agents.kinds.codex import Codex
from tests.agents.permissions import prompts
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.script import Call

_SIZED = 'stty rows 24 cols 80; exec "$@"'
_CURSOR, _ASKED_FOR_CURSOR = "\x1b[1;1R", r"\x1b\[6n"
_RULES = """\
prompts:
  rules:
    - {deny: Bash(rm *), reason: Use git rm.}
    - ask: Bash(git push *)
"""


class ExecTests(prompts.PromptsTestCase):
    """Headless, where Codex asks nobody and rules alone apply."""

    kind = Codex()
    options = ()
    config = _RULES

    def launch_command(self, prompt: str) -> Command:
        """The same without a sandbox of its own."""
        return self._launching(self.kind.unattended(prompt), self.kind.environment(self.home))

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


class SandboxTests(prompts.SandboxTestCase, ExecTests):
    """The same in Aileron's sandbox."""


class EgressTests(prompts.SandboxTestCase, ExecTests):
    """The same in a sandbox whose programs go through a proxy."""

    ways = ("--egress", "npm")


class TerminalTests(prompts.TalkTestCase):
    """Where a person sits: its own dialog comes after the wait in the inbox."""

    kind = Codex()
    options = ("--prompts",)
    config = "prompts:\n  wait_seconds: 8\n"

    def watched(self, command: Command) -> Command:
        """The same with the prompt, and on a terminal that has a size: without one it draws nothing."""
        begun = attrs.evolve(command, arguments=(*command.arguments, case.PROMPT))
        return super().watched(begun).behind("/bin/sh", "-c", _SIZED, "sh")

    async def asked(self) -> case.Launched:
        """The model wants to run a command outside of the sandbox."""
        call = Call(
            self.kind.shell,
            {
                "cmd": f"echo it ran > {prompts.MARK}",
                "sandbox_permissions": "require_escalated",
                "justification": "It writes.",
            },
        )
        launched = await self.converse([self.calls(call)])
        await launched.running.expect(_ASKED_FOR_CURSOR, 30)
        launched.running.press(_CURSOR)
        return launched

    async def shown(self, launched: case.Launched, words: str) -> None:
        """Wait until these words stand on its screen."""
        await until(self.reactor, lambda: words in launched.running.screen, 30, repr(words))

    async def test_allowed(self) -> None:
        """A command that is allowed in the inbox runs without a dialog."""
        launched = await self.asked()
        (ask,) = await self.asks()
        self.assertEqual((ask["agent"], ask["tool"]), ("codex", "Bash"))
        await self.operator("ask", "allow", ask["id"])
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())
        await self.left(launched)

    async def test_denied(self) -> None:
        """A denial reaches the model with its reason."""
        launched = await self.asked()
        (ask,) = await self.asks()
        await self.operator("ask", "deny", ask["id"], "--reason", prompts.REASON)
        await self.shown(launched, case.BYE)
        self.assertIn(prompts.REASON, self.results(launched)[-1])
        self.assertFalse(self.mark.exists())
        await self.left(launched)

    async def test_late(self) -> None:
        """After the wait its own dialog asks."""
        launched = await self.asked()
        await self.asks()
        await self.shown(launched, "Yes, proceed")
        self.assertEqual(await self.types(), ["ask.requested", "ask.expired"])
        await self.pause(1)
        launched.running.press("y")
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())
        await self.left(launched)
