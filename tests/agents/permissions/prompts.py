"""An agent's own permission prompts in the inbox: what holds for each agent that has a hook for them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.agents import case, surroundings
from tests.functional.process import Command
from tests.functional.script import Turn

MARK = "ran.txt"
REASON = "Write no files here."


class PromptsTestCase(case.AgentTestCase):
    """Launches an agent whose model wants to run a command that its user has not allowed.

    :cvar options: the options of the launch by which its prompts are listed.
    """

    options: tuple[str, ...] = ("--prompts",)
    config = ""

    async def furnish(self, config: str = "") -> None:
        """The usual home, with this case's settings."""
        await super().furnish(config or self.config)

    def launch_command(self, prompt: str) -> Command:
        """The same with the options."""
        return with_options(super().launch_command(prompt), *self.options)

    @property
    def mark(self) -> Path:
        """The file that the command writes."""
        return self.home.project / MARK

    def writing(self) -> Turn:
        """The model's call."""
        return self.calls(self.kind.run_in_shell(f"echo it ran > {MARK}"))

    async def asks(self, count: int = 1, *, seconds: float = case.SECONDS) -> Sequence[Mapping[str, Any]]:
        """Wait until so many prompts are listed as waiting."""
        found: list[Mapping[str, Any]] = []

        async def look() -> bool:
            told = json.loads((await self.command("ask", "list", "--json")).stdout)
            found[:] = told["items"]
            return len(found) >= count

        waited = 0.0
        while not await look():
            await self.pause(0.3)
            waited += 0.3
            self.assertLess(waited, seconds, "no prompt is listed")
        return found

    async def ended(self, launched: case.Launched) -> list[str]:
        """The end of the launch, and what tools answered."""
        finished = await launched.running.finish(case.SECONDS)
        self.assertEqual(finished.exit_code, 0, f"{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}")
        return self.results(launched)

    async def types(self) -> list[str]:
        """What is on record of prompts, oldest first."""
        return [each["type"] for each in await self.audit() if each["type"].startswith("ask.")]


def with_options(command: Command, *options: str) -> Command:
    """The same launch with more of its options."""
    place = command.arguments.index("launch") + 1
    ours, its = command.arguments[:place], command.arguments[place:]
    return attrs.evolve(command, arguments=(*ours, *options, *its))


class SandboxTestCase(PromptsTestCase):
    """The same in a sandbox, from which the hook reaches the agent site alone.

    :cvar ways: options that let the sandbox reach more.
    """

    ways: tuple[str, ...] = ()

    def launch_command(self, prompt: str) -> Command:
        """The same in a sandbox."""
        return surroundings.walled(super().launch_command(prompt), *self.ways)


class TalkTestCase(PromptsTestCase, surroundings.ConversationTestCase):
    """The same where a person sits at the agent."""

    options: tuple[str, ...] = ()

    def conversation(self) -> Command:
        """The same with the options."""
        return with_options(super().conversation(), *self.options)


class SandboxTalkTestCase(TalkTestCase):
    """The same in a sandbox."""

    def conversation(self) -> Command:
        """The same in a sandbox."""
        return surroundings.walled(super().conversation())
