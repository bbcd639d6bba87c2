"""The first hour of a new user at a terminal: from an empty home to an approved effect, every question counted."""

import re
import shlex
from collections.abc import Mapping

import attrs

from aileron.cli.actions.services import find_services
from aileron.home import Home as State
from aileron.home import prepare
from tests.extent import seldom
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, SHIP, OperatedTestCase
from tests.functional.process import Command, Finished
from tests.importing import page

CHARACTERS_A_MINUTE = 150
"""Of somebody who types slowly."""
QUESTION = re.compile(
    r"New passphrase: |Repeat the passphrase: |Secret for .+?: |Passphrase of the vault: |\[y/N\] |Enter to leave: "
)


def answers_of_setup(url: str, secret: str) -> Mapping[str, str]:
    """The questions of ``aileron setup`` where there is nothing yet, and answers that add a service of one's own."""
    return {
        "New passphrase: ": PASSPHRASE,
        "Repeat the passphrase: ": PASSPHRASE,
        "Number: ": str(len(find_services()) + 1),
        "URL that takes a POST request: ": f"{url}/api/chat.postMessage",
        "Name of the service: ": "chat",
        "What it does, in a sentence for the model: ": "Posts a message to the team.",
        r"Fields of its JSON body \[title, body\]: ": "channel, text",
        r"Header that carries the key \[Authorization\]: ": "",
        r"Trust all 2, exactly as shown\? \[y/N\] ": "y",
        r"Key for local://me/chat \(not shown\): ": secret,
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

    async def test_set_up(self) -> None:
        """Setup leads from nothing to a trusted action of one's own service in ten answers, and it works."""
        answers = answers_of_setup(self.service.url, self.workspace.token)
        running = self.start(self.plain(self.home.on_terminal("aileron", "setup")))
        for question, answer in answers.items():
            await running.expect(question)
            running.send(answer)
        finished = await running.finish(60)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        self.assertIn("Trusted: local://me/chat, chat-create", finished.stdout)
        self.assertEqual(finished.stdout.count("Passphrase of the vault: "), 0)
        for secret in (PASSPHRASE, self.workspace.token):
            self.assertNotIn(secret, finished.stdout)
        arguments = ("--arg", "channel=#general", "--arg", "text=Hello")
        asked = await self.at_terminal("action", "run", "chat-create", *arguments)
        approval_id = re.search(r"approvals/(\w+)", asked.stdout)
        assert approval_id is not None, asked.stdout
        shown = await self.succeeding("approval", "approve", approval_id[1], answers=(PASSPHRASE, "y"))
        self.assertIn("Approved and completed", shown)
        self.assertEqual([message.text for message in self.workspace.messages], ["Hello"])

    @seldom
    async def test_imported(self) -> None:
        """The commands of the page on importing lead from a document to an approved call, in five minutes of typing."""
        (self.home.project / "chat.yaml").write_text(page.DOCUMENT.replace("https://chat.example", self.service.url))
        answers = {
            "connector add": (PASSPHRASE, PASSPHRASE, "y"),
            "action add": (PASSPHRASE, "y"),
            "binding setup": (PASSPHRASE, self.workspace.token),
            "approval approve": (PASSPHRASE, "y"),
        }
        typed, shown, approval_id = 0, "", ""
        for line in page.COMMANDS:
            words = shlex.split(line.replace(" ID", f" {approval_id}"))[1:]
            given = answers.get(" ".join(words[:2]), ("",) if "--search" in words else ())
            typed += len(line) + sum(map(len, given))
            finished = await self.at_terminal(*words, answers=given)
            self.assertEqual(finished.exit_code, 75 if words[:2] == ["action", "run"] else 0, finished.stdout)
            shown = finished.stdout
            approval_id = next(iter(re.findall(r"approvals/(\w+)", shown)), approval_id)
        self.assertIn("Approved and completed", shown)
        self.assertEqual([message.text for message in self.workspace.messages], ["Hello"])
        self.assertLess(typed / CHARACTERS_A_MINUTE, 5)
        self.assertIn("TODO(import)", (self.home.project / "chat-post-message.md").read_text())
        await self.stopped()

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
        self.assertNotRegex(finished.stdout, r"(?m)^AILERON_")

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
