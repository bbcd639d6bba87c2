"""The kit itself works: a real agent, a scripted model and a toy MCP server understand each other."""

import json
import os
import sys
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults

from tests.functional import canary, opencode
from tests.functional.case import FunctionalTestCase
from tests.functional.home import Home
from tests.functional.llm import ScriptedLLM
from tests.functional.process import Command, Finished
from tests.functional.reactor import DeadlinePassedError, until
from tests.functional.script import Call, Calls, Hang, Received, Refuse, Say, ScriptError, found

SHIP = {"channel": "#engineering", "summary": "abc"}
ROOT = Path(__file__).parents[2]


def toy(mark: str = "toy", timeout_seconds: float = 60) -> dict[str, object]:
    """The toy server's entry in the agent's configuration."""
    command = [sys.executable, "-m", "tests.functional.toy_server"]
    environment = {"PYTHONPATH": str(ROOT), "TOY_MARK": mark}
    return {"aileron": opencode.stdio_server(command, environment, timeout_seconds)}


def approval_id(received: Received) -> dict[str, str]:
    """The arguments of a status check, out of what the first tool answered."""
    return {"approval_id": found(r"approval_id=(\w+)", received)}


class AgentTests(FunctionalTestCase):
    """Real OpenCode against the scripted model."""

    def agent(self, llm: ScriptedLLM, model: str = opencode.MODEL, home: Home | None = None) -> Command:
        """A headless run with the toy server."""
        config = opencode.configuration(llm.url, toy(mark=model), model)
        return opencode.headless(home or self.home, "tell the team", config)

    async def test_tool_result_reaches_the_model(self) -> None:
        """The model picks a tool, the agent calls it, and the result stands in the model's next request."""
        llm = self.llm([Call("_ship_update", SHIP), Say("all done")])
        finished = await self.run_command(self.agent(llm))
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""))
        self.assertEqual(opencode.texts(finished), ["all done"])
        first, second = llm.script.received
        self.assertIn("aileron_ship_update", first.tools)
        self.assertEqual(first.headers["authorization"], "Bearer k")
        self.assertEqual(second.tool_results, ["mock-model: pending, approval_id=apr_3, for #engineering"])

    async def test_anthropic_format(self) -> None:
        """The agent's built-in Anthropic provider is served as well, in that provider's own format."""
        llm = self.llm({opencode.CLAUDE: [Call("_ship_update", SHIP), Say("all done")]})
        config = opencode.anthropic_configuration(llm.url, toy(), key="canary")
        finished = await self.run_command(opencode.headless(self.home, "tell the team", config))
        self.assertEqual(opencode.texts(finished), ["all done"])
        first, second = llm.script.received
        self.assertEqual((first.path, first.headers["x-api-key"]), ("/v1/messages", "canary"))
        self.assertEqual(second.tool_results, ["toy: pending, approval_id=apr_3, for #engineering"])

    async def test_users_own_configuration(self) -> None:
        """The agent takes its model from the user's file and its servers from the environment, and leaves the file."""
        llm = self.llm([Call("_ship_update", SHIP), Say("all done")])
        path = opencode.configure_user(self.home, opencode.configuration(llm.url))
        before = path.read_bytes()
        command = opencode.headless(self.home, "tell the team", json.dumps({"mcp": toy()}))
        self.assertEqual(opencode.texts(await self.run_command(command)), ["all done"])
        self.assertEqual(path.read_bytes(), before)

    async def test_arguments_from_an_earlier_result(self) -> None:
        """A turn may take its arguments out of what a tool answered before."""
        llm = self.llm([Call("_ship_update", SHIP), Call("_check_action_status", approval_id), Say("done")])
        await self.run_command(self.agent(llm))
        self.assertEqual(llm.script.received[-1].tool_results[-1], "apr_3: completed")

    async def test_several_calls_in_one_turn(self) -> None:
        """One turn may call several tools, and both results come back."""
        calls = (Call("_ship_update", SHIP), Call("_check_action_status", {"approval_id": "apr_9"}))
        llm = self.llm([Calls(calls), Say("done")])
        await self.run_command(self.agent(llm))
        self.assertEqual(len(llm.script.received[-1].tool_results), 2)

    async def test_two_agents_at_once(self) -> None:
        """Two agents, each with its own model's script and home, do not disturb each other."""
        llm = self.llm({name: [Call("_ship_update", SHIP), Say(f"bye {name}")] for name in ("one", "two")})
        homes = {"one": self.home, "two": Home.make()}
        self.addCleanup(homes["two"].remove)
        runs = [
            Deferred.fromCoroutine(self.run_command(self.agent(llm, name, home), 90)) for name, home in homes.items()
        ]
        one, two = await gatherResults(runs, consumeErrors=True)
        self.assertEqual((opencode.texts(one), opencode.texts(two)), (["bye one"], ["bye two"]))
        for name in homes:
            self.assertIn(f"{name}: pending", llm.script.of(name)[1].tool_results[0])

    async def test_title_request_spends_no_turn(self) -> None:
        """An agent that asks for a heading of its session gets one, and the script goes on as written."""
        llm = self.llm([Say("done")])
        command = self.agent(llm)
        untitled = tuple(word for word in command.arguments if word not in ("--title", "t"))
        command = Command(arguments=untitled, environment=command.environment, directory=command.directory)
        finished = await self.run_command(command)
        self.assertEqual((opencode.texts(finished), len(llm.script.titles)), (["done"], 1))

    async def test_unscripted_turn_fails(self) -> None:
        """A request beyond the script is refused, shown by the agent, and fails the check."""
        llm = ScriptedLLM.listen(self.reactor, {opencode.MODEL: [Call("_ship_update", SHIP)]})
        self.finally_(llm.stop)
        finished = await self.run_command(self.agent(llm))
        self.assertIn("no turn left", finished.stdout)
        self.assertIn("no turn left", str(self.assertRaises(ScriptError, llm.script.check)))

    async def test_unspent_turn_fails(self) -> None:
        """A turn that nobody asked for fails the check."""
        llm = ScriptedLLM.listen(self.reactor, {opencode.MODEL: [Say("never")]})
        await llm.stop()
        self.assertRaises(ScriptError, llm.script.check)

    async def test_tool_not_offered_fails(self) -> None:
        """A call of a tool that the agent does not offer is a fault, not a silent wait."""
        llm = ScriptedLLM.listen(self.reactor, {opencode.MODEL: [Call("_launch_rocket")]})
        self.finally_(llm.stop)
        await self.run_command(self.agent(llm))
        self.assertIn("_launch_rocket", str(self.assertRaises(ScriptError, llm.script.check)))

    async def test_refusal_is_shown(self) -> None:
        """A provider's refusal ends the run at once, its message shown."""
        llm = self.llm([Refuse(403, "locked: run aileron vault unlock")])
        finished = await self.run_command(self.agent(llm))
        self.assertIn("locked: run aileron vault unlock", finished.stdout)

    async def test_time_limit_kills(self) -> None:
        """An agent that waits too long is killed, its group with it, and the model sees it go."""
        llm = self.llm([Hang()])
        running = self.start(self.agent(llm))
        await until(self.reactor, lambda: bool(llm.script.received), 60, "the agent's request")
        late = await self.assertFailure(Deferred.fromCoroutine(running.finish(0.1)), DeadlinePassedError)
        self.assertIn("opencode", str(late))
        await until(self.reactor, lambda: llm.hung_up == 1, 30, "the agent's hanging up")
        self.assertFalse(os.path.exists(f"/proc/{running.pid}"))

    async def test_behind_another_command(self) -> None:
        """The agent runs as the tail of another command all the same."""
        llm = self.llm([Say("hello")])
        finished: Finished = await self.run_command(self.agent(llm).behind("/usr/bin/env", "MARK=1"))
        self.assertEqual(opencode.texts(finished), ["hello"])

    async def test_search_for_a_canary(self) -> None:
        """A search of the home and of the process finds a canary exactly where it was put."""
        llm = self.llm([Hang()])
        word = "canary-5e1f0a7b"
        config = opencode.configuration(llm.url, key=word)
        running = self.start(opencode.headless(self.home, "wait", config))
        await until(self.reactor, lambda: bool(llm.script.received), 60, "the agent's request")
        places = {finding.place for finding in canary.in_process(running.pid, word)}
        self.assertEqual(places, {f"/proc/{running.pid}/environ"})
        self.assertEqual(canary.in_files(self.home.project, word), [])
