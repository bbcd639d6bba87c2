"""The kit itself works: a real agent, a scripted model and a toy MCP server understand each other."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from tests.functional import canary, opencode
from tests.functional.case import FunctionalTestCase
from tests.functional.llm import ScriptedLLM
from tests.functional.reactor import DeadlinePassedError, until
from tests.functional.script import Call, Calls, Hang, Received, Refuse, Say, ScriptError, Turn, found
from tests.functional.web import Reply, Web
from tests.installed import seldom

SHIP = {"channel": "#engineering", "summary": "abc"}
ROOT = Path(__file__).parents[2]
WORD = "canary-5e1f0a7b"


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

    @seldom
    async def test_conversation(self) -> None:
        """The model's calls, several in one turn among them, are the agent's, and their results the model's next turn.

        A turn may take its arguments out of what was answered before.  The user's file names the model, the environment
        the server; the agent has the built-in provider's own format, and asks for a heading, which spends no turn.
        """
        both = Calls((Call("_ship_update", SHIP), Call("_check_action_status", {"approval_id": "apr_9"})))
        turns: list[Turn] = [both, Call("_check_action_status", approval_id), Say("all done")]
        llm = self.llm({opencode.CLAUDE: turns})
        path = opencode.configure_user(self.home, opencode.anthropic_configuration(llm.url, key="canary"))
        before = path.read_bytes()
        command = opencode.headless(self.home, "tell the team", json.dumps({"mcp": toy()}))
        untitled = tuple(word for word in command.arguments if word not in ("--title", "t"))
        finished = await self.run_command(attrs.evolve(command, arguments=untitled))
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""))
        self.assertEqual((opencode.texts(finished), len(llm.script.titles)), (["all done"], 1))
        first, second, third = llm.script.received
        self.assertIn("aileron_ship_update", first.tools)
        self.assertEqual((first.path, first.headers["x-api-key"]), ("/v1/messages", "canary"))
        self.assertEqual(second.tool_results, ["toy: pending, approval_id=apr_3, for #engineering", "apr_9: completed"])
        self.assertEqual(third.tool_results[-1], "apr_3: completed")
        self.assertEqual(path.read_bytes(), before)

    async def test_time_limit_kills(self) -> None:
        """An agent that waits too long is killed, its group with it, and the model sees it go.

        Meanwhile a search of the home and of the process finds a canary exactly where it was put.
        """
        llm = self.llm([Hang()])
        running = self.start(opencode.headless(self.home, "wait", opencode.configuration(llm.url, key=WORD)))
        await until(self.reactor, lambda: bool(llm.script.received), 60, "the agent's request")
        places = {finding.place for finding in canary.in_process(running.pid, WORD)}
        self.assertEqual(places, {f"/proc/{running.pid}/environ"})
        self.assertEqual(canary.in_files(self.home.project, WORD), [])
        late = await self.assertFailure(Deferred.fromCoroutine(running.finish(0.1)), DeadlinePassedError)
        self.assertIn("opencode", str(late))
        await until(self.reactor, lambda: llm.hung_up == 1, 30, "the agent's hanging up")
        self.assertFalse(os.path.exists(f"/proc/{running.pid}"))


class ScriptTests(FunctionalTestCase):
    """What the scripted model makes of a program that does not follow the script."""

    async def ask(self, *turns: Any, times: int = 1) -> tuple[ScriptedLLM, Reply]:
        """Ask a model with this script as often, with one tool on offer; the last answer."""
        llm = ScriptedLLM.listen(self.reactor, {opencode.MODEL: turns})
        self.finally_(llm.stop)
        tool = {"type": "function", "function": {"name": "aileron_ship_update", "parameters": {"type": "object"}}}
        body = {"model": opencode.MODEL, "messages": [{"role": "user", "content": "Go."}], "tools": [tool]}
        for _ in range(times):
            reply = await Web(self.reactor).ask("POST", f"{llm.url}/v1/chat/completions", "k", body)
        return llm, reply

    async def test_unscripted_turn(self) -> None:
        """A request beyond the script is refused, and fails the check."""
        llm, reply = await self.ask(Call("_ship_update", SHIP), times=2)
        self.assertIn("no turn left", reply.text)
        self.assertIn("no turn left", str(self.assertRaises(ScriptError, llm.script.check)))

    async def test_unspent_turn(self) -> None:
        """A turn that nobody asked for fails the check."""
        llm, _ = await self.ask(Say("once"), Say("never"))
        self.assertRaises(ScriptError, llm.script.check)

    async def test_tool_not_offered(self) -> None:
        """A call of a tool that is not on offer is a fault, not a silent wait."""
        llm, _ = await self.ask(Call("_launch_rocket"))
        self.assertIn("_launch_rocket", str(self.assertRaises(ScriptError, llm.script.check)))

    async def test_refusal(self) -> None:
        """A refusal has the script's status and words."""
        llm, reply = await self.ask(Refuse(403, "locked: run aileron vault unlock"))
        self.assertEqual((reply.status, "locked: run aileron vault unlock" in reply.text), (403, True))
        llm.script.check()
