"""A user who launches one kind of agent, and what holds after every such launch."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from tests.agents.kind import Kind
from tests.functional import tree
from tests.functional.home import installed
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Command, Running
from tests.functional.reactor import until
from tests.functional.script import Call, Calls, Say, Turn

BYE = "That is all."
SECONDS = 120


@attrs.frozen
class Launched:
    """An agent under way.

    :ivar files: the user's own settings, as they were before.
    """

    running: Running
    llm: ScriptedLLM
    files: Mapping[Path, bytes]


class AgentTestCase(OperatedTestCase):
    """Launches the agent that a subclass names.

    :cvar kind: which.
    """

    kind: ClassVar[Kind]
    timeout = 300

    async def launch_agent(self, turns: Sequence[Turn], *actions: Path, **environment: str) -> Launched:
        """Furnish the user's home and start the agent with a script that ends with `BYE`.

        :param actions: files of more actions than the usual two.
        :param environment: what else the user has set.
        """
        llm = self.llm({self.kind.model: [*turns, Say(BYE)]})
        upstreams = {"AILERON_OPENAI_BASE_URL": llm.url, "AILERON_ANTHROPIC_BASE_URL": llm.url}
        self.home = attrs.evolve(self.home, variables={**upstreams, **environment})
        await self.furnish()
        if actions:
            await self.add(*actions)
        paths = self.kind.configure_user(self.home, llm.url)
        files = {path: path.read_bytes() for path in paths}
        return Launched(self.start(self.launch_command("tell the team")), llm, files)

    def launch_command(self, prompt: str) -> Command:
        """``aileron launch`` of one headless run, with the agent's program found on PATH."""
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        # A script, as what stands under another name or in another directory may not find what lies beside it.
        program = programs / self.kind.name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(self.kind.program())} "$@"\n')
        program.chmod(0o755)
        environment = self.home.environment(**self.kind.environment(self.home))
        return Command(
            arguments=(installed("aileron"), "launch", self.kind.name, *self.kind.arguments(prompt)),
            environment={**environment, "PATH": f"{programs}:{environment['PATH']}"},
            directory=self.home.project,
        )

    def call(self, action: str, arguments: Mapping[str, Any]) -> Call:
        """One call of an action."""
        return Call(self.kind.tool(action), arguments)

    def calls(self, *calls: Call) -> Calls:
        """Several in one turn."""
        return Calls(calls)

    async def requests(self, launched: Launched, count: int) -> None:
        """Wait until the model was asked so often."""
        script, model = launched.llm.script, self.kind.model
        await until(self.reactor, lambda: len(script.of(model)) >= count, SECONDS, f"{count} requests")

    def results(self, launched: Launched) -> list[str]:
        """What tools answered so far, as the model was last told."""
        received = launched.llm.script.of(self.kind.model)
        return [self.kind.result(text) for text in received[-1].tool_results] if received else []

    def assert_no_secrets(self, launched: Launched) -> None:
        """Of no process that the launch started do the arguments show a token, nor anything else what an operator has.

        Call it while the agent works.
        """
        members = list(tree.descendants(launched.running.pid))
        self.assertIn("aileron-mcp", {member.program for member in members})
        key = self.home.discovery()["launch_key"]
        for member in members:
            for secret in ("ail_a_", "ail_g_"):
                self.assertNotIn(secret, "\n".join(member.arguments), member.program)
            whole = json.dumps([member.arguments, dict(member.environment)])
            for secret in (PASSPHRASE, key, "ail_o_", "ail_l_", self.workspace.token):
                self.assertNotIn(secret, whole, member.program)

    async def finished(self, launched: Launched) -> list[str]:
        """Wait for the agent's end, which must be a good one, and return what tools answered.

        Its exit code is 0, its last words are the script's, its session has ended and the user's own files are as
        they were.
        """
        finished = await launched.running.finish(SECONDS)
        self.assertEqual(finished.exit_code, 0, f"{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}")
        self.assertEqual(self.kind.texts(finished)[-1:], [BYE], f"{finished.stdout[-3000:]}")
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assertEqual({path: path.read_bytes() for path in launched.files}, launched.files)
        (ended,) = [each for each in await self.audit() if each["type"] == "session.ended"]
        self.assertEqual(ended["payload"]["exit_code"], 0)
        return self.results(launched)
