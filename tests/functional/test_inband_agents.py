"""Real programs without MCP, launched in in-band mode: OpenCode with its MCP off, and llm, a chat in the terminal."""

import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.extent import seldom
from tests.functional import opencode
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.home import installed
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command, Finished
from tests.functional.script import Call, Calls, Say, Turn

GPT, MINI = "gpt-5.1", "gpt-4o-mini"
KEY = "sk-of-the-user"
NOTE, SHIPPING = Call("post_note", SHIP), Call("ship_update", SHIP)


class InBandAgentsCase(GatewayedTestCase):
    """Both actions, and a model that knows what to do with them."""

    async def begin(self, model: str, turns: Sequence[Turn]) -> ScriptedLLM:
        """A daemon with an open vault and both actions."""
        llm = self.llm({model: turns})
        self.use_upstream(llm)
        await self.furnish()
        return llm

    def in_band(self, command: Command) -> Command:
        """The same command, behind C{aileron launch --in-band}."""
        environment = {**command.environment, "AILERON_HOME": str(self.home.aileron), "OPENAI_API_KEY": KEY}
        words = (installed("aileron"), "launch", "--in-band", *command.arguments)
        return attrs.evolve(command, arguments=words, environment=environment)

    async def assert_ended(self, finished: Finished) -> None:
        """The program ended well, its session with it, and no token of ours has left."""
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        self.assertIn("in-band mode", finished.stderr)
        (session,) = (await self.told("sessions", "list"))["items"]
        self.assertEqual((session["state"], session["in_band"]), ("ended", True))


class OpenCodeTests(InBandAgentsCase):
    """An agent that has tools of its own."""

    def run_agent(self) -> Command:
        """OpenCode, with nothing but a model in its configuration."""
        self.configure_agent(f"openai/{GPT}")
        return self.in_band(opencode.headless(self.home, "tell the team", None))

    async def test_turns(self) -> None:
        """An action, a tool of its own, both in one turn, an action: it does its own part, and sees no other."""
        (self.home.project / "there.txt").write_text("what it says")
        look = Call("read", {"filePath": str(self.home.project / "there.txt")})
        turns: list[Turn] = [NOTE, look, Calls((NOTE, look)), NOTE, Say("all done")]
        llm = await self.begin(GPT, turns)
        finished = await self.run_command(self.run_agent())
        await self.assert_ended(finished)
        self.assertEqual(opencode.texts(finished), ["all done"])
        self.assertEqual(len(self.workspace.messages), 3)
        used = [event["part"]["tool"] for event in opencode.events(finished) if event.get("type") == "tool_use"]
        self.assertEqual(used, ["read", "read"])
        results = llm.script.of(GPT)[-1].tool_results
        self.assertEqual(sum("what it says" in each for each in results), 2)
        self.assertEqual(sum('"ts"' in each for each in results), 3)
        self.assertNotIn("post_note", finished.stdout)
        self.assertEqual(llm.script.of(GPT)[-1].headers["authorization"], f"Bearer {KEY}")

    @seldom
    async def test_decided(self) -> None:
        """It waits for a decision, and the model hears what came of it."""
        llm = await self.begin(GPT, [SHIPPING, SHIPPING, Say("all done")])
        agent = self.start(self.run_agent())
        for verdict in ("approve", "deny"):
            (approval,) = await self.waiting()
            self.assertEqual(approval["run"]["action"], GATED)
            await self.operator("approval", verdict, approval["id"], *(["--yes"] if verdict == "approve" else []))
        await self.assert_ended(await agent.finish(60))
        done, denied = llm.script.of(GPT)[-1].tool_results
        self.assertIn("ts", done)
        self.assertIn("The user said no", denied)
        self.assertEqual(len(self.workspace.messages), 1)


class LlmTests(InBandAgentsCase):
    """A program that chats and has no tools at all."""

    def run_chat(self, *more: str) -> Command:
        """One question to the model."""
        program = Path(sys.executable).with_name("llm")
        environment = self.home.environment(LLM_USER_PATH=str(self.home.root / "llm"))
        words = (str(program), "-m", MINI, *more, "tell the team")
        return self.in_band(Command(arguments=words, environment=environment, directory=self.home.project))

    async def test_actions(self) -> None:
        """Streamed or not, its model uses actions, and it shows what the model says."""
        await self.begin(MINI, [NOTE, NOTE, Say("all done")] * 2)
        for number, more in enumerate(((), ("--no-stream",)), 1):
            finished = await self.run_command(self.run_chat(*more))
            self.assertEqual((finished.stdout.strip(), finished.exit_code), ("all done", 0), finished.stderr)
            self.assertEqual(len(self.workspace.messages), 2 * number)
        turns = [each for each in await self.audit() if each["type"] == "in_band.turn"]
        self.assertEqual([each["payload"]["calls"][0]["tool"] for each in turns], ["post_note"] * 4)
