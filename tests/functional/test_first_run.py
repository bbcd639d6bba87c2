"""The first hour of a new user at a terminal: from an empty home to an approved effect, every question counted."""

import json
import re
import shlex
from collections.abc import Mapping

import attrs

from aileron.home.paths import Home as State
from aileron.home.paths import prepare
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, SHIP, OperatedTestCase
from tests.functional.process import Command, Finished, Running

QUESTION = re.compile(
    r"New passphrase: |Repeat the passphrase: |(?:Secret|Key|Bot token[^:]*) for .+?: "
    r"|Passphrase of the vault: |\[y/N\] |Enter to leave: "
)
ACTION = "local-post-api-chat-post-message"
"""What `aileron setup` makes of L{curl_of}."""


def answers_of_new_vault() -> Mapping[str, str]:
    """The questions where a vault is made, and answers that choose a passphrase."""
    return {"New passphrase: ": PASSPHRASE, "Repeat the passphrase: ": PASSPHRASE}


def curl_of(url: str) -> tuple[str, ...]:
    """A command that posts a message, as the documentation of a service may show it."""
    message = json.dumps({"channel": "#general", "text": "Hello"})
    return "curl", "-X", "POST", f"{url}/api/chat.postMessage", "-H", "Authorization: Bearer $TOKEN", "-d", message


def answers_of_setup(secret: str) -> Mapping[str, str]:
    """The questions of ``aileron setup`` with that command where there is nothing, and a passphrase of one's own."""
    return {
        r"Short name of the service \[local\]: ": "",
        **answers_of_new_vault(),
        r"Trust all 2, exactly as shown\? \[y/N\] ": "y",
        r"Key for local://me/local \(not shown\): ": secret,
    }


class FirstRunTests(OperatedTestCase):
    """A user who sets nothing in the environment."""

    executes_daemons = True

    def setUp(self) -> None:
        """The state lies in the user's own home."""
        super().setUp()
        self.state = State(self.home.user / ".aileron")
        self.questions: list[str] = []

    def plain(self, command: Command) -> Command:
        """The same command without ``AILERON_HOME``."""
        environment = {name: text for name, text in command.environment.items() if name != "AILERON_HOME"}
        return attrs.evolve(command, environment=environment)

    async def at_terminal(self, *arguments: str, answers: tuple[str, ...] = ()) -> Finished:
        """Run it on a terminal, answer each question as it comes, and note the questions."""
        running = self.start(self.plain(self.home.on_terminal("aileron", *arguments)))
        for answer in answers:
            await running.expect(QUESTION.pattern)
            running.send(answer)
        finished = await running.finish(60)
        self.questions += QUESTION.findall(finished.stdout)
        for secret in (PASSPHRASE, self.workspace.token):
            self.assertNotIn(secret, finished.stdout)
        return finished

    async def succeeding(self, *arguments: str, answers: tuple[str, ...] = ()) -> str:
        """What it showed; it must succeed."""
        finished = await self.at_terminal(*arguments, answers=answers)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        return finished.stdout

    async def test_from_nothing(self) -> None:
        """Seven answers lead from nothing to the effect: a new passphrase twice, trust, the key, two logins, yes."""
        self.assertEqual(list(self.home.user.iterdir()), [])
        prepare(self.state)
        self.write_connector()
        added = str(self.action_file(GATED, gated=True))
        shown = await self.succeeding("action", "add", added, answers=(PASSPHRASE, PASSPHRASE, "y"))
        self.assertIn("The daemon is running and the vault is unlocked", shown)
        self.assertIn(f"Trusted: {CONNECTOR}, {GATED}", shown)
        await self.succeeding("binding", "setup", CONNECTOR, answers=(PASSPHRASE, self.workspace.token))
        asked = await self.at_terminal("action", "run", GATED, *self.arguments())
        self.assertEqual(asked.exit_code, 75, asked.stdout)
        approval_id = re.search(r"approvals/(\w+)", asked.stdout)
        assert approval_id is not None
        shown = await self.succeeding("approval", "approve", approval_id[1], answers=(PASSPHRASE, "y"))
        self.assertIn(SHIP["summary"], shown)
        self.assertIn("Approved and completed", shown)
        self.assertEqual([message.text for message in self.workspace.messages], [SHIP["summary"]])
        self.assertEqual(self.questions, ["New passphrase: ", "Repeat the passphrase: ", "[y/N] ", *self.after_that()])
        self.assertIn("The daemon is not running", await self.stopped())

    async def set_up(self, *words: str) -> tuple[Running, str, int]:
        """Begin ``aileron setup`` on a terminal and answer until the key is asked for, the last question.

        :return: with the passphrase that was shown and typed once, and the characters typed so far, each Enter too.
        """
        running = self.start(self.plain(self.home.on_terminal("aileron", "setup", *words, PAGER="less")))
        if words[:1] == ("curl",):
            await running.expect("Short name of the service")
            running.send("")
        await running.expect("New passphrase: ")
        (passphrase,) = re.findall(r"(?m)^    ([a-z]+(?: [a-z]+){5})\r?$", running.output)
        running.send(passphrase)
        asked = (await running.expect(QUESTION.pattern))[0]
        self.assertEqual(asked, "[y/N] ", running.output)
        running.send("y")
        asked = (await running.expect(QUESTION.pattern))[0]
        self.assertRegex(asked, "^(Key|Bot token) for ", running.output)
        return running, passphrase, len(shlex.join(("aileron", "setup", *words))) + len(passphrase) + 4

    async def test_set_up(self) -> None:
        """A curl command in front of which `aileron setup` stands leads to a trusted action in four answers."""
        running, passphrase, typed = await self.set_up(*curl_of(self.service.url))
        running.send(self.workspace.token)
        finished = await running.finish(60)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        self.assertIn(f"Trusted: local://me/local, {ACTION}", finished.stdout)
        self.assertEqual(finished.stdout.count("Passphrase of the vault: "), 0)
        self.assertEqual(finished.stdout.count(passphrase), 1)
        self.assertNotIn(self.workspace.token, finished.stdout)
        kept = {path: path.read_bytes() for path in self.state.root.rglob("*") if path.is_file()}
        for secret in (passphrase, self.workspace.token):
            self.assertEqual([path for path, data in kept.items() if secret.encode() in data], [])
        typed += len(self.workspace.token) + 1
        self.assertLess(typed, 260, "what a user types, of which the command is pasted")
        arguments = ("--arg", "channel=#general", "--arg", "text=Hello")
        asked = await self.at_terminal("action", "run", ACTION, *arguments)
        approval_id = re.search(r"approvals/(\w+)", asked.stdout)
        assert approval_id is not None, asked.stdout
        shown = await self.succeeding("approval", "approve", approval_id[1], answers=(passphrase, "y"))
        self.assertIn("Approved and completed", shown)
        self.assertEqual([message.text for message in self.workspace.messages], ["Hello"])

    async def test_set_up_slack(self) -> None:
        """For Slack as well the third answer is the key, and no pager has to be left; broken off there, it goes on.

        Nothing is sent to Slack.
        """
        running, passphrase, typed = await self.set_up("slack")
        self.assertLess(typed, 90)
        running.send("\x03")
        finished = await running.finish(60)
        self.assertNotEqual(finished.exit_code, 0)
        wholly = finished.stdout.count("│ +++") // 2
        self.assertEqual(wholly, 5, "each action was shown whole, and the connector ships")
        self.assertEqual(finished.stdout.count("lines, "), 2 * wholly, "and named once more above the question")
        self.assertIn("Trusted: check-slack, ", finished.stdout)
        self.assertTrue((self.state.actions / "post-message.md").exists())
        again = self.start(self.plain(self.home.on_terminal("aileron", "setup", "slack")))
        await again.expect("Passphrase of the vault: ")
        again.send(passphrase)
        asked = (await again.expect(QUESTION.pattern))[0]
        self.assertRegex(asked, "^Bot token for ", again.output)
        self.assertIn("Nothing new to trust.", again.output)
        again.send("\x03")
        await again.finish(60)

    async def test_launched(self) -> None:
        """Where there is no vault yet a launch makes one on the way; the exit code is the agent's, and nothing more."""
        program = self.home.root / "programs" / "opencode"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho "agent got $*"\nenv | cut -d= -f1 | grep AILERON\nexit 7\n')
        program.chmod(0o700)
        path = f"{program.parent}:{self.home.environment()['PATH']}"
        launched = self.plain(self.home.on_terminal("aileron", "launch", "opencode", "--", "-x", "--json", PATH=path))
        running = self.start(launched)
        for prompt in ("New passphrase: ", "Repeat the passphrase: "):
            await running.expect(prompt)
            running.send(PASSPHRASE)
        await running.expect("agent got -x --json")
        finished = await running.finish(30)
        self.assertEqual(finished.exit_code, 7, finished)
        given = set(re.findall(r"(?m)^AILERON_\w+", finished.stdout))
        self.assertEqual(given, {"AILERON_PROMPTS", "AILERON_TOKEN", "AILERON_URL", "AILERON_WAKE"})  # for plugins

    def arguments(self) -> list[str]:
        """The action's, for the command line."""
        return [word for name, text in SHIP.items() for word in ("--arg", f"{name}={text}")]

    def after_that(self) -> list[str]:
        """What is asked once there is a vault and the action is trusted."""
        return [
            "Passphrase of the vault: ",
            f"Secret for {CONNECTOR} (not shown): ",
            "Passphrase of the vault: ",
            "[y/N] ",
        ]

    async def stopped(self) -> str:
        """What ``daemon status`` says after ``daemon stop``."""
        await self.succeeding("daemon", "stop")
        finished = await self.at_terminal("daemon", "status")
        self.assertEqual(finished.exit_code, 1)
        return finished.stdout
