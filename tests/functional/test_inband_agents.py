"""Real programs without MCP, launched in in-band mode: OpenCode, llm (a chat), and a script, also in a sandbox."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.extent import is_all, seldom
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


# Three requests by two SDKs, one with a tool of the script's own, and what a sandbox leaves of everything else.
_SCRIPT = """
import json, os, socket, anthropic, openai
hello = [{"role": "user", "content": "tell the team"}]
schema = {"type": "object", "properties": {}}
own = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
chat = openai.OpenAI(max_retries=0).chat.completions
first = chat.create(model="m", messages=hello, tools=own).choices[0].message
answers = [{"role": "tool", "tool_call_id": each.id, "content": "rain"} for each in first.tool_calls]
with chat.stream(model="m", messages=[*hello, first.model_dump(exclude_none=True), *answers], tools=own) as stream:
    text = stream.get_final_completion().choices[0].message.content
message = anthropic.Anthropic(max_retries=0).messages.create(model="m", max_tokens=9, messages=hello)
print(json.dumps({
    "own": [each.function.name for each in first.tool_calls],
    "texts": [text, message.content[0].text],
    "network": [name for _, name in socket.if_nameindex()],
    "ours": sorted(name for name in os.environ if name.startswith("AILERON_")),
}))
"""


class InBandAgentsCase(GatewayedTestCase):
    """Both actions, and a model that knows what to do with them."""

    async def begin(self, model: str, turns: Sequence[Turn]) -> ScriptedLLM:
        """A daemon with an open vault and both actions."""
        llm = self.llm({model: turns})
        self.use_upstream(llm)
        await self.furnish()
        return llm

    def in_band(self, command: Command, *options: str) -> Command:
        """The same command, behind C{aileron launch --in-band}."""
        keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
        environment = {**command.environment, "AILERON_HOME": str(self.home.aileron), **keys}
        words = (installed("aileron"), "launch", "--in-band", *options, *command.arguments)
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

    @seldom  # by SDKs in test_script and test_inband_sdks, by a real program in LlmTests
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
        """Streamed or not, its model uses actions, and it shows what the model says; the SDKs do both in every run."""
        ways: Sequence[Sequence[str]] = ((), ("--no-stream",)) if is_all() else ((),)
        await self.begin(MINI, [NOTE, NOTE, Say("all done")] * len(ways))
        for number, more in enumerate(ways, 1):
            finished = await self.run_command(self.run_chat(*more))
            self.assertEqual((finished.stdout.strip(), finished.exit_code), ("all done", 0), finished.stderr)
            self.assertEqual(len(self.workspace.messages), 2 * number)
        turns = [each for each in await self.audit() if each["type"] == "in_band.turn"]
        self.assertEqual([each["payload"]["calls"][0]["tool"] for each in turns], ["post_note"] * 2 * len(ways))


class SandboxedTests(InBandAgentsCase):
    """A script that uses the SDKs, in a sandbox."""

    async def run_script(self, *options: str) -> Finished:
        """Run it, with a model that mixes an action with the script's own tool, and then calls one."""
        mixed: list[Turn] = [Calls((NOTE, Call("weather", {}))), NOTE, Say("all done"), NOTE, Say("all done")]
        await self.begin("m", mixed)
        script = self.home.project / "script.py"
        script.write_text(_SCRIPT)
        words = (sys.executable, str(script))
        command = Command(arguments=words, environment=self.home.environment(), directory=self.home.project)
        return await self.run_command(self.in_band(command, "--sandbox", *options), 60)

    def assert_worked(self, finished: Finished) -> None:
        """It did its own part, saw no action and no key, and reached nothing else."""
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        found = {"own": ["weather"], "texts": ["all done", "all done"], "network": ["lo"], "ours": []}
        self.assertEqual(json.loads(finished.stdout), found)
        self.assertEqual(len(self.workspace.messages), 3)

    async def test_script(self) -> None:
        """It uses actions by both SDKs and in a mixed turn, and nothing but the daemon is reached."""
        finished = await self.run_script()
        self.assert_worked(finished)
        await self.assert_ended(finished)
        (session,) = (await self.told("sessions", "list"))["items"]
        self.assertTrue(session["notes_tools"], session)

    @seldom
    async def test_with_a_way_out(self) -> None:
        """With a way out beside it, its requests still go to the daemon and not by the proxy."""
        finished = await self.run_script("--egress", "npm")
        self.assert_worked(finished)
        self.assertIn("Sandbox: checked", finished.stderr)
