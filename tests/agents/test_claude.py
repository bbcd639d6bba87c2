"""Claude Code through all scenarios, on a terminal, and in a sandbox."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.agents import case, egress, scenarios, surroundings
from tests.agents.kinds.claude import SUBSCRIPTION, Claude
from tests.agents.permissions import prompts
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.script import Say

_LISTED = 'MCP server "aileron": Channel notifications'  # what it looks at when it has the list of tools
_RIGHT, _DOWN = "\x1b[C", "\x1b[B"
_QUESTION = "Esc to answer later"
_TITLE, _IDLE = "\x1b\\]0;(.) Claude Code\x07", "✳"
_SEVERAL_POLLS = 8.0
CHOSEN = "tell-channel"
_LEFT_TO_THE_MODEL = 'description = "Channel name with the leading #"'
_LEFT_TO_THE_USER = 'description = "Where"\nenum = ["#general", "#engineering"]\nask = true'


class ClaudeTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Claude()


class LoggedTestCase(case.AgentTestCase):
    """Knows from its log when the model has its tools."""

    @property
    def log(self) -> Path:
        """What Claude Code notes of itself."""
        return self.home.root / "claude.log"

    def conversation(self) -> Command:
        """The same with a log."""
        command = super().conversation()
        return attrs.evolve(command, arguments=(*command.arguments, "--debug-file", str(self.log)))

    async def listed(self) -> None:
        """Wait until it has the list of tools."""
        await until(self.reactor, lambda: _LISTED in self.noted(), case.SECONDS, "the tools")

    def noted(self) -> str:
        """What it has noted so far."""
        return self.log.read_text() if self.log.exists() else ""


class TalkTestCase(LoggedTestCase, surroundings.ConversationTestCase):
    """Where a person sits.

    Claude Code shows the task's question, whether to open the review page, and asks for no outcome as long as that
    stands on its screen. A hook of ours answers it.
    """

    kind = Claude()

    async def prompt(self, launched: case.Launched) -> None:
        """Type the usual prompt, once it has the tools."""
        await self.listed()
        launched.running.press(case.PROMPT)
        await self.shown(launched, case.PROMPT)
        await self.pause(1)  # until it has shared the list out among its parts
        launched.running.press("\r")

    async def asked(self) -> tuple[case.Launched, Mapping[str, Any]]:
        """A call was made and waits; the terminal tells so, and a question stands on the screen."""
        launched = await self.converse([self.call(GATED, SHIP), Say("It waits.")])
        await self.prompt(launched)
        (approval,) = await self.waiting(seconds=case.SECONDS)
        await launched.running.expect("\x1b\\]9;1 pending approval", 10)
        await self.requests(launched, 2)
        return launched, approval

    async def shown(self, launched: case.Launched, words: str) -> None:
        """Wait until these words stand on its screen."""
        await until(self.reactor, lambda: words in launched.running.screen, 20, repr(words))

    async def woken(self, launched: case.Launched) -> None:
        """Wait until the model was told what came of the call, and has answered; all that this takes is a poll."""
        await self.shown(launched, case.BYE)
        self.assertIn("C0002", json.dumps(launched.llm.script.of(self.kind.model)[-1].messages[-1]))
        await until(self.reactor, lambda: self.is_idle(launched), 20, "its prompt")

    def is_idle(self, launched: case.Launched) -> bool:
        """Whether it waits for its user, as the terminal's title says."""
        return re.findall(_TITLE, launched.running.output)[-1:] == [_IDLE]


class TerminalTests(TalkTestCase):
    """With the hook."""

    async def test_terminal(self) -> None:
        """A call waits in its background, and wakes it; no line of ours is on its screen, which Ctrl-C ends cleanly."""
        launched, approval = await self.asked()
        self.assert_no_secrets(launched)
        await self.pause(3)
        self.assertNotIn(_QUESTION, launched.running.screen)
        await self.approve(approval["id"])
        await self.woken(launched)
        self.assertNotIn("aileron: 1 pending approval", launched.running.output)
        await self.left(launched)
        last = launched.llm.script.of(self.kind.model)[-1]
        self.assertEqual(last.headers["authorization"], f"Bearer {SUBSCRIPTION}")
        self.assertNotIn("x-aileron-gateway-key", last.headers)

    async def test_form(self) -> None:
        """What the model leaves to its user is asked for by a form on the screen, and sent as it was chosen there."""
        path = self.action_file(CHOSEN, gated=False)
        path.write_text(path.read_text().replace(_LEFT_TO_THE_MODEL, _LEFT_TO_THE_USER))
        launched = await self.converse([self.call(CHOSEN, {"summary": SHIP["summary"]})], path)
        await self.prompt(launched)
        await self.shown(launched, f"{CHOSEN}: what the agent leaves to you. This approves nothing.")
        for keys, words in ((_RIGHT, "❯ ◯ #general"), (_DOWN, "❯ ◯ #engineering"), ("\r", "✔ channel: #engineering")):
            launched.running.press(keys)
            await self.shown(launched, words)
        self.assertEqual(self.workspace.messages, [])
        await self.pause(1)  # it takes no Enter that comes at once
        launched.running.press("\r")
        await self.woken(launched)
        await self.left(launched)
        self.assertEqual([(each.channel, each.text) for each in self.workspace.messages], [("C0002", SHIP["summary"])])


class QuestionTests(TalkTestCase):
    """Without the hook."""

    def conversation(self) -> Command:
        """The same without hooks."""
        return prompts.with_options(super().conversation(), "--no-prompts")

    async def test_question_stands(self) -> None:
        """A call that was decided while its question stands wakes it as soon as that is answered, and not before."""
        launched, approval = await self.asked()
        await self.shown(launched, _QUESTION)
        await self.approve(approval["id"])
        await self.posted()
        await self.pause(_SEVERAL_POLLS)
        told = len(launched.llm.script.of(self.kind.model)) > 2
        self.assertFalse(told, "it looks for the outcome meanwhile, unlike what the documents say")
        launched.running.press(_RIGHT)
        await self.shown(launched, "❯ I'm done, continue")
        await self.pause(1)  # it takes no Enter that comes at once
        launched.running.press("\r")
        await self.woken(launched)
        await self.left(launched)


class SandboxTests(surroundings.SandboxTestCase):
    """Its conversations are its own, and what it notes beside the user's directory is gone."""

    kind = Claude()
    kept = ".claude/projects/*/*.jsonl"

    async def test_sandbox(self) -> None:
        """See the base class."""
        await super().test_sandbox()
        self.assertFalse((self.home.user / ".claude.json").exists())


class EgressTests(egress.EgressTestCase):
    """In a sandbox with a way out."""

    kind = Claude()
