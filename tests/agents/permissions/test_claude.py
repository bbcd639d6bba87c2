"""Claude Code's own permission prompts in the inbox."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.agents import case, test_claude
from tests.agents.kinds.claude import Claude
from tests.agents.permissions import prompts
from tests.functional.operated import PASSPHRASE
from tests.functional.process import Command
from tests.functional.reactor import until

_RULES = """\
prompts:
  rules:
    - deny: Bash(rm *)
      reason: Use git rm.
"""
_SHOWN_SECONDS = 3.0
"""The time in which a busy machine draws the dialog; the refused hook itself takes no time."""
_DIALOG, _ESCAPE = "Do you want to proceed?", "\x1b"
_OFFER = "Try the new fullscreen renderer?"


class Logged(test_claude.LoggedTestCase):
    """Knows what is on its screen."""

    async def shown(self, launched: case.Launched, words: str) -> None:
        """Wait until these words stand on its screen."""
        await until(self.reactor, lambda: words in launched.running.screen, 20, repr(words))

    async def listed_tools(self) -> None:
        """Wait until it has the list of tools."""
        await self.listed()


class HeadlessTests(prompts.PromptsTestCase):
    """Headless, where Claude Code would not run the command."""

    kind = Claude()

    async def test_allowed(self) -> None:
        """A command that is allowed in the inbox runs."""
        launched = await self.launch_agent([self.writing()])
        (ask,) = await self.asks()
        self.assertEqual((ask["tool"], ask["text"]), ("Bash", f"echo it ran > {prompts.MARK}"))
        await self.operator("ask", "allow", ask["id"])
        await self.finished(launched)
        self.assertTrue(self.mark.exists())
        self.assertEqual(await self.types(), ["ask.requested", "ask.allowed"])

    async def test_denied(self) -> None:
        """A command that is denied does not run, and the model reads why."""
        launched = await self.launch_agent([self.writing()])
        (ask,) = await self.asks()
        await self.operator("ask", "deny", ask["id"], "--reason", prompts.REASON)
        (result,) = await self.finished(launched)
        self.assertIn(prompts.REASON, result)
        self.assertFalse(self.mark.exists())


class SandboxTests(prompts.SandboxTestCase, HeadlessTests):
    """The same in a sandbox."""


class RulesTests(prompts.PromptsTestCase):
    """Rules where Claude Code would not ask."""

    kind = Claude()
    config = _RULES

    def launch_command(self, prompt: str) -> Command:
        """The same with all commands allowed."""
        return self._launching(self.kind.unattended(prompt), self.kind.environment(self.home))

    async def test_denied(self) -> None:
        """A rule denies, and what no rule is about runs."""
        turns = [self.calls(self.kind.run_in_shell("rm -f x")), self.writing()]
        launched = await self.launch_agent(turns)
        results = await self.finished(launched)
        self.assertIn("Use git rm.", results[0])
        self.assertTrue(self.mark.exists())


class EgressTests(prompts.SandboxTestCase, HeadlessTests):
    """The same in a sandbox whose programs go through a proxy."""

    ways = ("--egress", "npm")


class SandboxRulesTests(prompts.SandboxTestCase, RulesTests):
    """Rules in a sandbox."""


class TalkTestCase(Logged, prompts.TalkTestCase):
    """Where a person sits, and Claude Code's own dialog is open beside the inbox."""

    kind = Claude()

    async def asked(self, *turns: Any) -> tuple[case.Launched, Mapping[str, Any]]:
        """The model wants to run a command; the dialog is on the screen, and the prompt in the inbox."""
        launched = await self.converse([self.writing(), *turns])
        await self.listed_tools()
        await self.settled(launched)
        launched.running.press(case.PROMPT)
        await self.shown(launched, case.PROMPT)
        await self.pause(1)  # it takes no Enter that comes at once
        launched.running.press("\r")
        (ask,) = await self.asks()
        await self.shown(launched, _DIALOG)
        return launched, ask

    async def settled(self, launched: case.Launched) -> None:
        """Answer what it asks before it takes a prompt."""

    async def yes(self, launched: case.Launched) -> None:
        """Allow the command in the dialog, and find that it ran."""
        await self.pause(1)  # it takes no Enter that comes at once
        launched.running.press("\r")
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())


class TerminalTests(TalkTestCase):
    """Answers in the inbox and in the dialog."""

    async def test_allowed(self) -> None:
        """An answer in the inbox closes the dialog."""
        launched, ask = await self.asked()
        await self.operator("ask", "allow", ask["id"])
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())
        await self.left(launched)

    async def test_yes_in_terminal(self) -> None:
        """An answer in the dialog closes the prompt in the inbox."""
        launched, _ = await self.asked()
        await self.yes(launched)
        self.assertEqual(await self.types(), ["ask.requested", "ask.answered_in_terminal"])
        await self.left(launched)

    async def test_no_in_terminal(self) -> None:
        """So does a refusal there."""
        launched, _ = await self.asked()
        launched.running.press(_ESCAPE)
        await self.shown(launched, "Interrupted")
        self.assertFalse(self.mark.exists())
        self.assertEqual((await self.types())[0], "ask.requested")
        self.assertIn((await self.types())[1], ("ask.withdrawn", "ask.answered_in_terminal"))
        await self.type(launched, case.PROMPT)
        await self.shown(launched, case.BYE)
        await self.left(launched)


class SandboxTerminalTests(prompts.SandboxTalkTestCase, TerminalTests):
    """The same in a sandbox."""

    @property
    def log(self) -> Path:
        """Where it may write."""
        return self.home.project / "claude.log"

    async def settled(self, launched: case.Launched) -> None:
        """Refuse another renderer, which it offers where it cannot note that it did so before."""
        await self.shown(launched, _OFFER)
        await self.pause(1)
        launched.running.press(_ESCAPE)
        await until(self.reactor, lambda: _OFFER not in launched.running.screen, 20, "the end of its offer")
        await self.pause(1)


class LateTests(TalkTestCase):
    """Where nobody answers in the inbox."""

    config = "prompts:\n  wait_seconds: 2\n"

    async def test_allowed(self) -> None:
        """After the wait only the dialog asks, as it always did."""
        launched, ask = await self.asked()
        await self.pause(2.5)
        self.assertEqual(await self.types(), ["ask.requested", "ask.expired"])
        answered = await self.aileron("ask", "allow", ask["id"], passphrase=PASSPHRASE)
        self.assertNotEqual(answered.exit_code, 0)
        self.assertFalse(self.mark.exists())
        await self.yes(launched)
        await self.left(launched)


class GoneTests(TalkTestCase):
    """Where the daemon is gone."""

    options = ("--no-gateway",)

    def conversation(self) -> Command:
        """The same with a model that is reached without the daemon."""
        command = super().conversation()
        url = self.home.variables["AILERON_ANTHROPIC_BASE_URL"]
        return attrs.evolve(command, environment={**command.environment, "ANTHROPIC_BASE_URL": url})

    async def test_falls_back(self) -> None:
        """Its own dialog asks at once, and the command runs when it is allowed there."""
        launched = await self.converse([self.writing()])
        await self.listed_tools()
        await self.kill_daemon()
        launched.running.press(case.PROMPT)
        await self.shown(launched, case.PROMPT)
        await self.pause(1)
        launched.running.press("\r")
        await self.requests(launched, 1)
        began = time.monotonic()
        await self.shown(launched, _DIALOG)
        self.assertLess(time.monotonic() - began, _SHOWN_SECONDS)
        await self.pause(1)
        launched.running.press("\r")
        await self.shown(launched, case.BYE)
        self.assertTrue(self.mark.exists())
