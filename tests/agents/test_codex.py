"""Codex through all scenarios, on a terminal, and in a sandbox."""

import re

import attrs

from tests.agents import case, egress, scenarios, surroundings
from tests.agents.kinds.codex import Codex
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command

_SIZED = 'stty rows 40 cols 120; exec "$@"'
_CURSOR, _ASKED_FOR_IT = "\x1b[1;1R", r"\x1b\[6n"


class CodexTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Codex()


class TerminalTests(surroundings.ConversationTestCase):
    """Where a person sits."""

    kind = Codex()

    def watched(self, command: Command) -> Command:
        """The same with the prompt, and on a terminal that has a size: without one it draws nothing."""
        begun = attrs.evolve(command, arguments=(*command.arguments, case.PROMPT))
        return super().watched(begun).behind("/bin/sh", "-c", _SIZED, "sh")

    async def test_terminal(self) -> None:
        """It asks, waits and is told on its own screen, where no line of ours is; Ctrl-C ends it cleanly."""
        launched = await self.converse([self.call(GATED, SHIP)])
        await launched.running.expect(_ASKED_FOR_IT, 30)
        launched.running.press(_CURSOR)
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        await launched.running.expect("\x1b\\]9;1 pending approval", 10)
        await self.approve(approval["id"])
        await launched.running.expect(re.escape(case.BYE.split()[-1]), 40)
        self.assertNotIn("aileron: 1 pending approval", launched.running.output)
        await self.left(launched)
        self.assertIn("C0002", self.results(launched)[-1])


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are its own, though they lie among its settings, as do files of work before."""

    kind = Codex()
    kept = ".codex/sessions/**/*.jsonl"
    beside = ("installation_id", "state_5.sqlite")

    def launch_command(self, prompt: str) -> Command:
        """The same, where it has worked before."""
        own = self.home.user / ".codex"
        (own / "installation_id").write_text("6456965c-8b07-4c30-bc1a-413f3491ac37")
        (own / "state_5.sqlite").touch()
        return super().launch_command(prompt)

    async def test_sandbox(self) -> None:
        """See the base class."""
        await super().test_sandbox()
        self.assertEqual((self.home.user / ".codex/state_5.sqlite").read_bytes(), b"")


class EgressTests(egress.EgressTestCase):
    """In a sandbox with a way out."""

    kind = Codex()
