"""A person decides after the agent's turn has ended: what holds for each agent that can be woken."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.agents import case, surroundings
from tests.agents.permissions import prompts
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.script import Say, Turn

WAITS = "It waits."
_CONFIG = "wake:\n  after_seconds: 2\n"


class LateTestCase(surroundings.ConversationTestCase):
    """Launches an agent at a terminal whose calls do not wait for the decision.

    :cvar options: the options of the launch.
    """

    options: tuple[str, ...] = ("--wait", "0")
    config = _CONFIG

    async def furnish(self, config: str = "") -> None:
        """The usual home, with this case's settings."""
        await super().furnish(config or self.config)

    def conversation(self) -> Command:
        """The same with the options."""
        return prompts.with_options(super().conversation(), *self.options)

    async def begun(self, *turns: Turn) -> tuple[case.Launched, Mapping[str, Any]]:
        """Have it call a gated action and end its turn; return what waits for approval."""
        launched = await self.converse([self.call(GATED, SHIP), Say(WAITS), *turns])
        await self.prompt(launched)
        (approval,) = await self.waiting(seconds=case.SECONDS)
        await self.shown(launched, WAITS)
        return launched, approval

    async def prompt(self, launched: case.Launched) -> None:
        """Type the usual prompt."""
        await launched.running.expect(self.kind.ready, case.SECONDS)
        await self.type(launched, case.PROMPT)

    async def shown(self, launched: case.Launched, words: str) -> None:
        """Wait until these words stand on its screen."""
        await until(self.reactor, lambda: words in launched.running.screen, 40, repr(words))

    async def woken_by(self) -> Sequence[str]:
        """The runs by which agents were woken, oldest first."""
        return [each["run_id"] for each in await self.audit() if each["type"] == "wake.sent"]

    def last_words(self, launched: case.Launched) -> str:
        """What the model was last sent."""
        return json.dumps(launched.llm.script.of(self.kind.model)[-1].messages[-2:])


class WakingTestCase(LateTestCase):
    """For a class that names its kind of agent."""

    async def test_woken(self) -> None:
        """The idle agent begins a turn of its own with the outcome, once."""
        launched, approval = await self.begun()
        await self.pause(1)
        await self.approve(approval["id"])
        await self.shown(launched, case.BYE)
        said = self.last_words(launched)
        self.assertIn(f"approval_id {approval['id']}", said)
        self.assertIn(f"{GATED}, which you called earlier, has completed", said)
        await self.pause(5)
        self.assertEqual(await self.woken_by(), [approval["id"]])
        self.assertEqual(len(launched.llm.script.of(self.kind.model)), 3)
        await self.left(launched)

    async def test_denied(self) -> None:
        """A denied run wakes nobody."""
        launched, approval = await self.begun()
        await self.operator("approval", "deny", approval["id"])
        await self.pause(6)
        self.assertEqual(len(launched.llm.script.of(self.kind.model)), 2)
        await self.type(launched, "and now?")
        await self.shown(launched, case.BYE)
        self.assertEqual(await self.woken_by(), [])
        await self.left(launched)


class ResumedTestCase(case.AgentTestCase):
    """Launches an agent without a screen, whose launch waits after it has ended. For a class that names its kind."""

    async def furnish(self, config: str = "") -> None:
        """The usual home, with a short rest."""
        await super().furnish(config or _CONFIG)

    def launch_command(self, prompt: str) -> Command:
        """The same with the options."""
        return prompts.with_options(super().launch_command(prompt), "--wait", "0", "--wake")

    async def begun(self, *turns: Turn) -> tuple[case.Launched, Mapping[str, Any]]:
        """Have it call a gated action and end; return what waits for approval."""
        launched = await self.launch_agent([self.call(GATED, SHIP), *turns])
        (approval,) = await self.waiting(seconds=case.SECONDS)
        words = "It is resumed with the outcome"
        await until(self.reactor, lambda: words in launched.running.errors, case.SECONDS, repr(words))
        return launched, approval

    async def test_resumed(self) -> None:
        """The agent that has ended goes on in the same conversation and session with the outcome, once."""
        launched, approval = await self.begun(Say(WAITS))
        await self.approve(approval["id"])
        await self.finished(launched)
        script = launched.llm.script.of(self.kind.model)
        said = json.dumps(script[-1].messages)
        self.assertIn(f"approval_id {approval['id']}", said)
        self.assertIn(WAITS, said)
        self.assertEqual(len(script), 3)
        sent = [each for each in await self.audit() if each["type"] == "wake.sent"]
        self.assertEqual([(each["run_id"], each["payload"]["how"]) for each in sent], [(approval["id"], "resumed")])
