"""The quickstart pages, played: from an empty home to a call of a real agent that its user approved."""

from collections.abc import Mapping

from tests.extent import seldom
from tests.functional import opencode
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Finished
from tests.functional.script import Call, Say
from tests.functional.test_first_run import ACTION, answers_of_setup, curl_of

COMMANDS = ("aileron setup slack", "aileron launch {agent}", "aileron approve")
"""What the pages have a reader type once Aileron is installed; L{tests.cli.test_doc} compares them."""
SHOWN = (
    "agent (self-reported)",
    "working directory (self-reported)",
    "Request of step 1, ",
    "Authorization: (the credential, added when the request is sent)",
    "Approve exactly this? [y/N]",
    "Approved and completed:",
)
"""What the pages show of the output of the last command, whatever the service is."""
MESSAGE = {"channel": "#engineering", "text": "The new parser is out."}


class QuickstartTests(OperatedTestCase):
    """Each command in the order of the pages, with OpenCode as the agent."""

    executes_daemons = True

    async def at_terminal(self, line: str, answers: Mapping[str, str], *more: str) -> Finished:
        """Type a command, and answer its questions in order; it must succeed, and show no secret.

        :param more: words behind it.
        """
        words = (*line.split()[1:], *more)
        running = self.start(self.home.on_terminal("aileron", *words))
        for question, answer in answers.items():
            await running.expect(question)
            running.send(answer)
        finished = await running.finish(60)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        for secret in (PASSPHRASE, self.workspace.token):
            self.assertNotIn(secret, finished.stdout)
        return finished

    @seldom
    async def test_played(self) -> None:
        """Setup, launch and approval are all it takes; the runs and the audit log tell of it."""
        setup, launch, approve = COMMANDS
        setup = setup.removesuffix(" slack")  # which would be connected to; the test has a service of its own
        await self.at_terminal(setup, answers_of_setup(self.workspace.token), *curl_of(self.service.url))
        llm = self.llm([Call(f"aileron_{ACTION.replace('-', '_')}", MESSAGE), Say("posted")])
        opencode.configure_user(self.home, opencode.configuration(llm.url, {}))
        command = self.launched()
        self.assertEqual(command.arguments[1:3], tuple(launch.format(agent="opencode").split()[1:]))
        agent = self.start(command)
        await self.waiting()
        answers = {"Passphrase of the vault: ": PASSPHRASE, r"\[y/N\] ": "y"}
        shown = (await self.at_terminal(approve, answers)).stdout
        self.assertEqual([each for each in SHOWN if each not in shown], [])
        finished = await agent.finish(60)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["posted"]))
        self.assertEqual([(each.text) for each in self.workspace.messages], [MESSAGE["text"]])
        for line in ("aileron run list", "aileron audit list"):
            shown = (await self.at_terminal(line, {})).stdout
            self.assertIn(ACTION[:10], shown)  # the rest stands in further lines
