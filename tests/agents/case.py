"""A user who launches one kind of agent, and what holds after every such launch."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
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

PROMPT, BYE = "tell the team", "That is all."
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

    async def launch_agent(
        self, turns: Sequence[Turn], *actions: Path, gallery: bool = False, **environment: str
    ) -> Launched:
        """Furnish the user's home and start the agent, headless.

        :param turns: all but the last, which says `BYE`.
        :param actions: files of more actions than the usual two.
        :param gallery: whether there is one, for actions that look at it.
        :param environment: what else the user has set.
        """
        llm, paths = await self.prepare(turns, *actions, gallery=gallery, **environment)
        files = contents(paths)
        return Launched(self.start(self.launch_command(PROMPT)), llm, files)

    async def prepare(
        self, turns: Sequence[Turn], *actions: Path, gallery: bool = False, **environment: str
    ) -> tuple[ScriptedLLM, tuple[Path, ...]]:
        """Do all that comes before the start, as for `launch_agent`.

        :return: the model, and the user's own settings.
        """
        llm = self.llm({self.kind.model: [*turns, Say(BYE)]})
        upstreams = {"AILERON_OPENAI_BASE_URL": llm.url, "AILERON_ANTHROPIC_BASE_URL": llm.url}
        self.home = attrs.evolve(self.home, variables={**upstreams, **environment})
        await self.furnish()
        if gallery:
            self.open_gallery()
        if actions:
            await self.add(*actions)
        return llm, self.kind.configure_user(self.home, llm.url)

    def launch_command(self, prompt: str) -> Command:
        """``aileron launch`` of one headless run, with the agent's program found on PATH."""
        return self._launching(self.kind.arguments(prompt), self.kind.environment(self.home))

    def conversation(self) -> Command:
        """``aileron launch`` of a conversation, for a terminal."""
        return self._launching(self.kind.opening, self.kind.login(self.home))

    def _launching(self, arguments: tuple[str, ...], its: Mapping[str, str]) -> Command:
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        # A script, as what stands under another name or in another directory may not find what lies beside it.
        program = programs / self.kind.name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(self.kind.program())} "$@"\n')
        program.chmod(0o755)
        environment = self.home.environment(**its)
        return Command(
            arguments=(installed("aileron"), "launch", self.kind.name, *arguments),
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
        self.assertEqual(contents(launched.files), launched.files)
        (ended,) = [each for each in await self.audit() if each["type"] == "session.ended"]
        self.assertEqual(ended["payload"]["exit_code"], 0)
        return self.results(launched)

    def assert_untouched(self, launched: Launched) -> None:
        """After a conversation the user's own files are as they were, but for notes of the agent's own."""
        for path, before in launched.files.items():
            now = path.read_bytes()
            noted = now[len(before) :] if self.kind.notes else b""
            self.assertEqual(now.removesuffix(noted), before, path)
            self.assertNotIn(b"aileron", noted)


def contents(paths: Iterable[Path]) -> dict[Path, bytes]:
    """What stands in them."""
    return {path: path.read_bytes() for path in paths}
