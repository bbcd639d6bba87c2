"""Codex through all scenarios, on a terminal, and behind walls."""

import re

import attrs

from tests.agents import case, scenarios, surroundings
from tests.agents.kinds.codex import Codex
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command

_WATCHED = """
stty rows 40 cols 120  # without a size it draws nothing
before=$(stty -g); "$@"; code=$?; [ "$(stty -g)" = "$before" ] && echo as it was; exit $code
"""
_CURSOR, _ASKED_FOR_IT = "\x1b[1;1R", r"\x1b\[6n"


class CodexTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Codex()


class TerminalTests(case.AgentTestCase):
    """Where a person sits."""

    kind = Codex()

    def launch_command(self, prompt: str) -> Command:
        """A session that begins with the prompt, of a user who trusts the project."""
        path = self.home.user / ".codex" / "config.toml"
        with path.open("a") as file:
            file.write(f'[projects."{self.home.project}"]\ntrust_level = "trusted"\n')
        command = super().launch_command(prompt)
        headless = self.kind.arguments(prompt)
        interactive = attrs.evolve(command, arguments=(*command.arguments[: -len(headless)], prompt), terminal=True)
        return interactive.behind("/bin/sh", "-c", _WATCHED, "sh")

    async def test_terminal(self) -> None:
        """It asks, waits and is told on its own screen, where no line of ours is; Ctrl-C ends it cleanly."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        settings = self.home.user / ".codex" / "config.toml"
        before = settings.read_text()
        await launched.running.expect(_ASKED_FOR_IT, 30)
        launched.running.press(_CURSOR)
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        await launched.running.expect("\x1b\\]9;a call waits for your approval", 10)
        await self.approve(approval["id"])
        await launched.running.expect(re.escape(case.BYE.split()[-1]), 40)
        self.assertNotIn("aileron: a call waits", launched.running.output)
        launched.running.press("\x03")
        await self.pause(0.5)
        launched.running.press("\x03")
        finished = await launched.running.finish(30)
        self.assertEqual(finished.exit_code, 0)
        self.assertIn("as it was", finished.stdout[-100:])
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        # What it notes there itself, of hints that it has given.
        kept, noted = settings.read_text()[: len(before)], settings.read_text()[len(before) :]
        self.assertEqual(kept, before)
        self.assertNotIn("aileron", noted)
        self.assertIn("C0002", self.results(launched)[-1])


class SandboxTests(case.AgentTestCase):
    """C{aileron launch --sandbox}."""

    kind = Codex()

    def launch_command(self, prompt: str) -> Command:
        """The same behind walls, where it has worked before."""
        own = self.home.user / ".codex"
        (own / "installation_id").write_text("6456965c-8b07-4c30-bc1a-413f3491ac37")
        (own / "state_5.sqlite").touch()
        return surroundings.walled(super().launch_command(prompt))

    async def test_sandbox(self) -> None:
        """It thinks through the gateway and acts; its conversation stays, and nothing beside settings does."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        (approval,) = await self.waiting(seconds=case.SECONDS)
        await self.approve(approval["id"])
        (result,) = await self.finished(launched)
        self.assertIn("C0002", result)
        own = self.home.user / ".codex"
        self.assertEqual(len(list((own / "sessions").rglob("*.jsonl"))), 1)
        there = {path.name for path in own.iterdir() if path.is_file()}
        self.assertEqual(there, {"auth.json", "config.toml", "installation_id", "state_5.sqlite"})
        self.assertEqual((own / "state_5.sqlite").read_bytes(), b"")
