"""C{doc/mail.md} and C{doc/services/smtp.md}, played: an account is connected, and a team may be written to."""

from __future__ import annotations

from aileron.base.json import JSON
from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.mailserver import PASSWORD, MailServer
from tests.functional.test_mail import answers_of_connect


class MailPageTestCase(PageTestCase):
    """A user with a mail account, and nothing else yet."""

    def setUp(self) -> None:
        super().setUp()
        self.server = MailServer.listen(self.reactor)
        self.finally_(self.server.stop)
        self.secrets.append(PASSWORD)

    async def connect(self) -> None:
        """Connect it; its mailboxes are listed."""
        answers = [*answers_of_connect(self.server).items()]
        shown = await self.play(Play("aileron setup --choose smtp", answers=answers))
        self.assertIn("Connected to Mail", shown)


class SmtpTests(MailPageTestCase):
    """C{doc/services/smtp.md}."""

    page = "services/smtp.md"

    @seldom
    async def test_played(self) -> None:
        """The page's one command connects the account."""
        await self.connect()


class MailTests(MailPageTestCase):
    """C{doc/mail.md}."""

    page = "mail.md"

    @seldom
    async def test_played(self) -> None:
        """Whoever approves a message as the page says is not asked for the next one to the same team."""
        await self.connect()
        session = await self.session()
        asked = (await self.run_action(session, "send-mail", self.message("ann@example.org"))).body
        await self.play(
            Play(
                "aileron approve ID --grant --uses 20 --for 8h --allow to=domain:example.org "
                "--allow subject=any --allow text=any",
                replace={"ID": str(asked["approval_id"])},
                answers=[LOG_IN, YES],
                shows=["Approved and completed"],
            )
        )
        team = await self.run_action(session, "send-mail", self.message("bob@example.org"), wait=20)
        self.assertIn("message_id", team.body["result"]["output"])
        other = (await self.run_action(session, "send-mail", self.message("eve@other.example"))).body
        self.assertIn("approval_id", other)
        self.assertEqual([to for to, _ in self.server.received], ["ann@example.org", "bob@example.org"])

    def message(self, to: str) -> dict[str, JSON]:
        """The arguments of a message to somebody."""
        return {"to": [to], "subject": f"To {to}", "text": "The parser is out."}
