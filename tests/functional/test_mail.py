"""Mail from nothing to the first message that was approved, against real servers, by the clock; and a lost answer."""

import base64
import json
import re

from tests.functional.mailserver import PASSWORD, USER, MailServer
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Finished
from tests.functional.reactor import until
from tests.functional.test_first_run import answers_of_new_vault

MOST_SECONDS = 180.0
MESSAGE = {"to": ["Bob <bob@other.example>"], "subject": "Grüße", "text": "Hello\n.\nBye"}


def answers_of_connect(server: MailServer) -> dict[str, str]:
    """The questions of ``aileron setup --choose smtp`` in an empty home, and the answers for an account."""
    smtp, imap = server.places
    return {
        **answers_of_new_vault(),
        "Your mail address: ": USER,
        r"Number \[5\]: ": "",
        "SMTP server.*: ": smtp,
        "IMAP server.*: ": imap,
        r"User name \[.*\]: ": "",
        r"Actions to add \[1,2,3,4,5\]: ": "",
        r"Trust all 6, exactly as shown\? \[y/N\] ": "y",
        r"App password for .* \(not shown\): ": PASSWORD,
    }


class MailTestCase(OperatedTestCase):
    """A new user with a mail account."""

    def setUp(self) -> None:
        super().setUp()
        self.server = MailServer.listen(self.reactor)
        self.finally_(self.server.stop)

    async def at_terminal(self, *arguments: str, answers: dict[str, str]) -> Finished:
        """Run it on a terminal, and answer each question; the password shows nowhere."""
        running = self.on_terminal(*arguments)
        for question, answer in answers.items():
            await running.expect(question)
            running.send(answer)
        finished = await running.finish(60)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        for secret in (PASSPHRASE, PASSWORD):
            self.assertNotIn(secret, finished.stdout)
        return finished

    async def connect(self) -> str:
        """Connect the account; what it showed."""
        return (await self.at_terminal("connect", "smtp", answers=answers_of_connect(self.server))).stdout


class MailTests(MailTestCase):
    """Mail alone."""

    async def request(self) -> str:
        """Request a message; the number of its run."""
        asked = await self.command("action", "run", "send-mail", "--args", json.dumps(MESSAGE), code=75)
        found = re.search(r"approvals/(\w+)", asked.stdout + asked.stderr)
        assert found is not None, asked
        return found[1]

    async def test_first_mail(self) -> None:
        """Eleven answers and one passphrase more lead from nothing to a message that arrived, within three minutes.

        Then a lost answer is found, a message is read, and the password is in no file.
        """
        began = self.reactor.seconds()
        shown = await self.connect()
        self.assertIn("Connected to Mail", shown)
        self.assertIn(USER, shown)
        approval = await self.request()
        answers = {"Passphrase of the vault: ": PASSPHRASE, r"\[y/N\] ": "y"}
        shown = (await self.at_terminal("approval", "approve", approval, answers=answers)).stdout
        took = self.reactor.seconds() - began
        print(f"from nothing to the first mail: {took:.1f} s")
        self.assertLess(took, MOST_SECONDS)
        for part in ("Approved and completed", "RCPT TO: <bob@other.example>", "Message-ID: <aileron.", "Grüße"):
            self.assertIn(part, shown)
        ((recipient, message),) = self.server.received
        self.assertEqual("bob@other.example", recipient)
        self.assertIn(b"Message-ID: <aileron.", message)
        (copy,) = self.server.mailbox("GESENDET")
        self.assertTrue(message.endswith(copy[-40:]))
        await self.lose_an_answer()
        await self.read()
        await self.command("daemon", "stop")
        kept = [path for path in self.home.root.rglob("*") if path.is_file()]
        forms = (PASSWORD.encode(), *(base64.b64encode(b" " * lead + PASSWORD.encode())[4:-4] for lead in range(3)))
        self.assertEqual([], [path for path in kept if any(form in path.read_bytes() for form in forms)])

    async def lose_an_answer(self) -> None:
        """A message whose acknowledgement was lost is found where sent messages are: sent once, and completed."""
        sent = len(self.server.received)
        self.server.drops, self.server.saves = 1, True
        approval = await self.request()
        await self.approve(approval, code=1)
        await until(self.reactor, lambda: len(self.server.mailbox("GESENDET")) > sent, 30, "the message")

        async def state() -> str:
            return str((await self.told("runs", "show", approval))["state"])

        self.assertIn(await state(), {"unknown", "completed"})
        await self.operator("runs", "reconcile", approval)
        self.assertEqual("completed", await state())
        self.assertEqual(sent + 1, len(self.server.received))

    async def read(self) -> None:
        """A message is found and read without an approval."""
        self.server.put(b"From: Bob <bob@other.example>\r\nSubject: Lunch\r\n\r\nAt noon?\r\n")
        found = json.loads((await self.command("action", "run", "search-mail", "--json")).stdout)
        (message,) = found["result"]["output"]["messages"]
        self.assertEqual(("Lunch", "Bob <bob@other.example>"), (message["subject"], message["from"]))
        read = await self.command("action", "run", "read-mail", "--arg", f"uid={message['uid']}", "--json")
        self.assertEqual("At noon?\r\n", json.loads(read.stdout)["result"]["output"]["text"])
