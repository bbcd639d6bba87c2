"""Of connectors of the kind mail: the contract, what leaves, and what each step of a conversation comes to."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from email import message_from_bytes
from email.policy import default
from functools import partial
from typing import Any

from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, canonical
from aileron.connectors._conversation import LineConversation, NotUnderstood
from aileron.connectors.kinds.mail.compose import message_id
from aileron.connectors.kinds.mail.connector import MailConnector
from aileron.connectors.kinds.mail.imap import ImapSession, _parse_text
from aileron.connectors.kinds.mail.reading import read_message, summarize
from aileron.model.connectors import READ, Finding, Outcome, Sought
from aileron.model.errors import CapabilityDenied, InvalidRequest, NetworkError
from aileron.model.interfaces.vault import ICredential
from aileron.testing import ConnectorContract, ConnectorRig, MemoryCredential
from tests.connectors.certificate import Certificate
from tests.connectors.mailhost import CUT, FILE, HANG, PAIR, PASSWORD, MailHost, mail_spec
from tests.connectors.service import NOW
from tests.growth import seconds

MAIL: Mapping[str, JSON] = {"to": "bob@other.example", "subject": "Grüße", "text": "Hello\n.dot\nBye"}
BASE = "smtps://mail.example:465"
STARTTLS = FILE.replace("465", '587\ntls = "starttls"').replace("993", '143\ntls = "starttls"')


PIECES = [
    *(b"Content-Type: multipart/mixed; boundary=b\r\n", b"Content-Type: text/plain; charset=utf-7\r\n", b"--b\r\n"),
    *(b"\r\n", b"--b--", b"Subject: =?x?q?=FF?=\r\n", b"Content-Transfer-Encoding: base64\r\n", b"A\xff=\r\n"),
    *(b"Content-Disposition: attachment; filename*0*=utf-8''%FF; filename*1=x\r\n", b"From: =?utf-8?b?!?=\r\n"),
]


TOKENS = [b"(", b")", b'"', b"\\", b" ", b"{2}\r\n", b"[", b"]", b"BODY", b"UID 7", b"\r\n", b"\xff"]


def basic(pair: bytes = PAIR) -> MemoryCredential:
    """The credential that works."""
    return MemoryCredential(pair, "Basic {key}")


LISTED: JSON = {"address": "ada@mail.example", "mailboxes": ["Drafts", "INBOX", "Sent"]}
SENT: Mapping[str, JSON] = {"message_id": message_id("effect-1", mail_spec().account.sender), "saved_in": "Sent"}


@define
class Rig:
    """An account and its servers, in the contract's hand."""

    host: MailHost = field(factory=MailHost)
    base_url: str = BASE
    reads: str = "list_mailboxes"
    writes: str = "send_mail"
    inputs: Mapping[str, JSON] = field(factory=lambda: MAIL)
    connector: MailConnector = field()

    @connector.default
    def _(self) -> MailConnector:
        return self.host.connector()

    outputs: list[JSON] = field(factory=lambda: [LISTED, {**SENT}])

    def queue_answer(self, output: JSON) -> JSON:
        """As usual: a connector of this kind makes outputs of its own."""
        return self.outputs.pop(0)

    def queue_silence(self) -> None:
        """The message is never acknowledged."""
        self.host.answers[b"DOT"] = HANG

    def advance(self, seconds: float) -> None:
        self.host.service.advance(seconds)

    def sent(self) -> int:
        """Count what was done with the account, the look for where a copy goes not counted."""
        return len(self.host.accepted) + self.host.listed - len(self.host.boxes["Sent"])


class MailContractTests(ConnectorContract, SynchronousTestCase):
    """The kind keeps the contract of every connector."""

    rig = Rig

    def inputs(self, rig: ConnectorRig, operation: str) -> Mapping[str, JSON]:
        return rig.inputs if operation == rig.writes else {}


class MailCase(SynchronousTestCase):
    """An account."""

    def setUp(self) -> None:
        self.host = MailHost()

    def start(
        self,
        operation: str = "send_mail",
        inputs: Mapping[str, JSON] | None = None,
        *,
        file: str = FILE,
        credential: ICredential | None = None,
        seconds: float = 60,
        late_seconds: float = 0.0,
        key: str = "effect-1",
    ) -> Deferred[Outcome]:
        """Start one operation, and let every byte arrive."""
        connector = self.host.connector(file)
        given = MAIL if inputs is None else inputs
        request = connector.prepare(operation, given, connector.describe().base_url or "", key)
        credential = credential or basic()
        if request.effect == READ:
            started = Deferred.fromCoroutine(connector.read(request, credential, seconds))
        else:
            started = Deferred.fromCoroutine(connector.invoke(request, credential, seconds, late_seconds))
        self.host.service.advance(0)
        return started

    def outcome(self, operation: str = "send_mail", inputs: Mapping[str, JSON] | None = None, **more: str) -> Outcome:
        """What it comes to, at once."""
        outcome = self.successResultOf(self.start(operation, inputs, **more))  # type: ignore[arg-type]
        self.assertNotIn(PASSWORD, repr(outcome))
        return outcome

    def unsent(self, outcome: Outcome, words: str, *, retriable: bool = False) -> None:
        """Nothing was sent, and why is said."""
        assert outcome.fault is not None
        self.assertIn(words, outcome.fault.message)
        self.assertEqual((False, retriable), (outcome.sent, outcome.fault.retriable))
        self.assertEqual([], self.host.accepted)

    def look(self, operation: str = "send_mail", key: str = "effect-1", file: str = FILE) -> Finding:
        """What is found of an effect."""
        connector = self.host.connector(file)
        sought = Sought(operation, MAIL, connector.describe().base_url or "", key, NOW, NOW)
        looking = Deferred.fromCoroutine(connector.reconcile(sought, basic(), 30))
        self.host.service.advance(0)
        return self.successResultOf(looking)


class SendingTests(MailCase):
    """``send_mail``."""

    def test_sent(self) -> None:
        """A message reaches every recipient as it was shown, with a date, and a copy is where sent messages are."""
        mail = {**MAIL, "cc": ["Carl, Jr <carl@other.example>"], "bcc": "dora@third.example"}
        outcome = self.outcome(inputs=mail)
        self.assertIsNone(outcome.fault)
        ((sender, recipients, message),) = self.host.accepted
        self.assertEqual("ada@mail.example", sender)
        self.assertEqual(("bob@other.example", "carl@other.example", "dora@third.example"), recipients)
        shown = self.host.connector().prepare("send_mail", mail, BASE, "effect-1")
        self.assertEqual(b"Date: Fri, 01 May 2026 12:00:00 +0000\r\n" + (shown.body or b""), message)
        self.assertNotIn(b"dora", message)
        self.assertEqual([message], self.host.boxes["Sent"])
        read = message_from_bytes(message, policy=default)
        self.assertEqual(("Grüße", "Hello\r\n.dot\r\nBye\r\n"), (read["Subject"], read.get_content()))
        self.assertEqual({"message_id": read["Message-ID"], "saved_in": "Sent"}, outcome.output)

    def test_one_effect_one_identifier(self) -> None:
        """The identifier of a message is that of its effect: the same again, and another for another."""
        connector = self.host.connector()
        first, again, other = (connector.prepare("send_mail", MAIL, BASE, key).body for key in ("a", "a", "b"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_starttls(self) -> None:
        """Where a server begins in the clear, everything of the account is said after TLS only."""
        outcome = self.outcome(file=STARTTLS)
        self.assertIsNone(outcome.fault)
        self.assertEqual([b"EHLO [127.0.0.1]", b"STARTTLS"], self.host.in_clear[:2])
        self.assertEqual([b"a1 STARTTLS"], self.host.in_clear[2:])
        self.assertEqual((1, 1), (len(self.host.accepted), len(self.host.boxes["Sent"])))

    def test_starttls_stripped(self) -> None:
        """A server that does not offer TLS, or refuses it, learns nothing: no login, no message."""
        for said, answer in (
            (b"PLAIN EHLO", b"250-mail.example\r\n250 AUTH PLAIN\r\n"),
            (b"STARTTLS", b"454 not now\r\n"),
        ):
            self.host.answers = {said: answer}
            self.unsent(self.outcome(file=STARTTLS), "", retriable=said == b"STARTTLS")
            self.assertFalse([each for each in self.host.heard if each.startswith((b"AUTH", b"MAIL"))])

    def test_said_before_tls(self) -> None:
        """What is said in the clear after the consent to TLS is not taken for said inside."""
        self.host.answers = {b"STARTTLS": b"220 go\r\n250 injected\r\n"}
        self.unsent(self.outcome(file=STARTTLS), "cannot read")

    def test_not_trusted(self) -> None:
        """A server whose certificate is another's is sent nothing, by implicit TLS or STARTTLS."""
        self.host.service.trusted = Certificate.made("other.example")
        for file in (FILE, STARTTLS):
            self.unsent(self.outcome(file=file), "could not be reached", retriable=True)
        self.assertFalse([each for each in self.host.heard if each.startswith((b"AUTH", b"MAIL"))])

    def test_private_address(self) -> None:
        """A server's name that leads to a private address is connected to by nobody."""
        self.host.service.names["mail.example"] = ["10.0.0.7"]
        self.unsent(self.outcome(), "may not be connected to")
        self.assertEqual([], self.host.service.connected)

    def test_refused_before(self) -> None:
        """Whatever refuses a message before it leaves says that nothing was sent; 4xx may be tried again."""
        for said, reply, words in (
            (b"CONNECT", b"421 busy\r\n", "refused the connection: 421 busy"),
            (b"CONNECT", b"554 go away\r\n", "refused the connection: 554 go away"),
            (b"EHLO", b"502 what\r\n", "refused the greeting"),
            (b"AUTH", b"535 no\r\n", "refused the login: 535 no"),
            (b"MAIL", b"451 later\r\n", "refused the sender: 451 later"),
            (b"RCPT", b"550 unknown\r\n", "refused the recipient bob@other.example: 550 unknown"),
            (b"DATA", b"554 no\r\n", "refused the message: 554 no"),
        ):
            self.host.answers = {said: reply}
            self.unsent(self.outcome(), words, retriable=reply.startswith(b"4"))

    def test_all_or_none(self) -> None:
        """A message is sent to all of its recipients or to none: one refused recipient, and nobody gets it."""
        self.host.answers[b"RCPT TO:<BAD"] = b"550 no such user\r\n"
        self.unsent(self.outcome(inputs={**MAIL, "cc": ["bad@other.example"]}), "bad@other.example: 550")
        self.assertNotIn(b"DATA", self.host.heard)

    def test_cut_before(self) -> None:
        """A connection that breaks before the message leaves has sent nothing, and it may be tried again."""
        for said in (b"CONNECT", b"EHLO", b"AUTH", b"MAIL", b"RCPT", b"DATA"):
            self.host.answers = {said: CUT}
            self.unsent(self.outcome(), "could not be reached", retriable=True)

    def test_cut_after(self) -> None:
        """A connection that breaks after the message left leaves its outcome unknown."""
        for answer in (CUT, b"421 closing\r\n", b"2", b"what?\r\n", b"250-half\r\n"):
            self.host = MailHost(answers={b"DOT": answer})
            started = self.start()
            if answer in {b"2", b"250-half\r\n"}:
                self.assertNoResult(started)
                self.host.service.reset()
            outcome = self.successResultOf(started)
            self.assertEqual((True, False), (outcome.sent, outcome.classified), answer)
            self.assertFalse(outcome.fault and outcome.fault.retriable)

    def test_refused_after(self) -> None:
        """A server that refuses the message after all of it came has not taken it."""
        for reply in (b"554 spam\r\n", b"452 full\r\n"):
            self.host.answers = {b"DOT": reply}
            outcome = self.outcome()
            self.assertEqual((True, True), (outcome.sent, outcome.classified))
            self.assertIn("refused the message", (outcome.fault and outcome.fault.message) or "")

    def test_late_credential(self) -> None:
        """A credential that is there only after the time is up is not used: nothing is begun without a limit."""
        clock = self.host.service.reactor

        class Late(MemoryCredential):
            """One that takes its time, while nothing else happens."""

            async def reveal(self) -> bytes:
                clock.advance(6)
                return await super().reveal()

        for operation in ("send_mail", "list_mailboxes"):
            started = self.start(operation, {} if operation != "send_mail" else None, credential=Late(PAIR), seconds=5)
            self.failureResultOf(started, NetworkError)
        self.assertEqual(([], []), (self.host.heard, self.host.service.connected))

    def test_odd_size(self) -> None:
        """What a server says of sizes and is no number says nothing."""
        for size in ("²".encode(), b"9" * 5000, b"-1", b"1e3", b""):
            self.host = MailHost()
            self.host.offers[0] = b"SIZE " + size
            self.assertIsNone(self.outcome().fault, size)

    def test_too_large(self) -> None:
        """A message that is larger than the server says it takes is not sent."""
        self.host.offers[0] = b"SIZE 100"
        self.unsent(self.outcome(), "the server takes 100")

    def test_logins(self) -> None:
        """The password goes by PLAIN, or by LOGIN where that is all, and never where neither is offered."""
        self.host.offers[1] = b"AUTH LOGIN"
        self.host.answers = {b"AUTH LOGIN": b"334 VXNlcm5hbWU6\r\n"}
        self.unsent(self.outcome(), "refused")
        self.host.offers[1] = b"AUTH GSSAPI"
        self.unsent(self.outcome(), "offers none")

    def test_credential_refused(self) -> None:
        """A credential that the server does not accept is told so; with another at hand it may be tried again."""
        for renewable in (False, True):
            credential = MemoryCredential(b"d3Jvbmc6d3Jvbmc=", "Basic {key}", renewable=renewable)
            outcome = self.successResultOf(self.start(credential=credential))
            self.unsent(outcome, "refused the login", retriable=renewable)
            self.assertEqual(1, len(credential.refusals))

    def test_not_now(self) -> None:
        """A server that takes no login now says nothing of the credential, which is kept as it is."""
        for code in (b"421", b"432", b"454"):
            self.host.answers = {b"AUTH": code + b" try again later\r\n"}
            credential = MemoryCredential(b"s3cret-value")
            outcome = self.successResultOf(self.start(credential=credential))
            self.unsent(outcome, "refused the login", retriable=True)
            self.assertEqual(credential.refusals, [])

    def test_echo(self) -> None:
        """A server that repeats the credential is quoted without it, and that is noted."""
        wrong = MemoryCredential(b"d3JvbmctdXNlcjp3cm9uZy1wYXNzd29yZA==", "Basic {key}")
        outcome = self.successResultOf(self.start(credential=wrong))
        self.assertIn("echoed", outcome.notes)
        self.assertNotIn("d3Jvbmc", repr(outcome.fault))

    def test_token(self) -> None:
        """An OAuth 2 token goes by XOAUTH2, for the user that the file names."""
        outcome = self.successResultOf(self.start(credential=MemoryCredential(b"s3cret-value")))
        self.assertIsNone(outcome.fault)
        self.assertTrue(any(each.startswith(b"AUTH XOAUTH2 ") for each in self.host.heard))

    def test_dots(self) -> None:
        """No line of a text ends the message, or says something to the server."""
        text = "\n.\nMAIL FROM:<eve@evil.example>\n..\n." + "\r.\r\n.\r\n" + "x" * 16383 + "\n.\nQUIT\n"
        self.outcome(inputs={**MAIL, "text": text})
        ((_, _, message),) = self.host.accepted
        self.assertIn("MAIL FROM:<eve@evil.example>", message_from_bytes(message, policy=default).get_content())

    def test_slow(self) -> None:
        """What has not left in time never does; what has left is waited for a while longer, then it is unknown."""
        self.host.answers = {b"RCPT": HANG}
        started = self.start(seconds=5)
        self.host.service.advance(5)
        self.unsent(self.successResultOf(started), "did not answer within 5 seconds")
        self.host.answers = {b"DOT": HANG}
        started = self.start(seconds=5, late_seconds=10)
        self.host.service.advance(14)
        self.assertNoResult(started)
        self.host.service.advance(1)
        outcome = self.successResultOf(started)
        self.assertEqual((True, False), (outcome.sent, outcome.classified))

    def test_endless(self) -> None:
        """A server that never stops talking is cut off."""
        self.host.answers = {b"EHLO": b"250-x\r\n" * 200}
        self.unsent(self.outcome(), "cannot read")
        self.host.answers = {b"EHLO": b"x" * (13 * 1024 * 1024)}
        self.unsent(self.outcome(), "cannot read")

    def test_copy_fails(self) -> None:
        """A message that was taken was sent, whatever happens to its copy."""
        for said, answer in ((b"LIST", CUT), (b"APPEND", b"a4 NO full\r\n"), (b"CONNECT", b"* BYE\r\n")):
            self.host.answers = {said: answer} if said != b"CONNECT" else {b"CAPABILITY": answer}
            outcome = self.outcome()
            self.assertEqual((None, None), (outcome.fault, outcome.output["saved_in"]))  # type: ignore[index,call-overload]

    def test_copy_of_odd_mailbox(self) -> None:
        """A mailbox whose name cannot be said back is none that a copy or a draft could go to."""
        self.host.answers = {b"LIST": b'* LIST (\\Sent \\Drafts) "/" "a\tb"\r\na3 OK\r\n'}
        outcome = self.outcome()
        self.assertEqual((None, None), (outcome.fault, outcome.output["saved_in"]))  # type: ignore[index,call-overload]
        outcome = self.outcome("save_draft")
        self.assertEqual((False, "external_api_error"), (outcome.sent, outcome.fault and outcome.fault.kind))

    def test_copy_hangs(self) -> None:
        """A copy is waited for twenty seconds; whoever gives up meanwhile is told that the message was sent."""
        self.host.answers = {b"LIST": HANG}
        started = self.start()
        self.host.service.advance(19)
        self.assertNoResult(started)
        self.host.service.advance(1)
        self.assertIsNone(self.successResultOf(started).fault)
        started = self.start()
        started.cancel()
        self.assertIsNone(self.successResultOf(started).fault)

    def test_cancelled(self) -> None:
        """Giving up while the message is on its way ends the connection at once."""
        self.host.answers = {b"DOT": HANG}
        started = self.start()
        started.cancel()
        self.failureResultOf(started, CancelledError)

    def test_no_copy(self) -> None:
        """No copy is saved where the server does that itself, or where there is no IMAP."""
        file = FILE.replace('"Ada Example <ada@mail.example>"', '"ada@mail.example"\nsave_sent = false')
        self.assertIsNone(self.outcome(file=file).fault)
        self.assertIsNone(self.outcome(file=FILE.replace('[imap]\nhost = "mail.example"\nport = 993\n', "")).fault)
        self.assertEqual([], self.host.boxes["Sent"])

    def test_another_request(self) -> None:
        """A request that was changed, or is another connector's, is refused before a credential is opened."""
        connector, credential = self.host.connector(), basic()
        request = connector.prepare("send_mail", MAIL, BASE, "effect-1")
        for changed in (
            evolve(request, url="smtps://evil.example:465"),
            evolve(request, url="smtps://mail.example:4650"),
            evolve(request, connector="local://me/other"),
            evolve(request, headers=(("MAIL FROM", "<a@b>"), ("RCPT TO", "<a@b>\r\nDATA"))),
            evolve(request, headers=()),
            evolve(request, method="POST"),
        ):
            invoking = Deferred.fromCoroutine(connector.invoke(changed, credential, 30))
            self.failureResultOf(invoking, CapabilityDenied)
        self.assertEqual(([], 0), (self.host.heard, credential.opened))


class LookingTests(MailCase):
    """Reconciliation, and drafts."""

    def test_found(self) -> None:
        """A message whose acknowledgement was lost is found by its identifier where sent messages are."""
        self.outcome()
        finding = self.look()
        self.assertTrue(finding.happened)
        self.assertEqual("Sent", finding.output["saved_in"])  # type: ignore[index,call-overload]
        self.assertIsNone(self.look(key="effect-2").happened)

    def test_not_found(self) -> None:
        """That it is not there settles nothing, nor does a server that cannot be asked."""
        self.assertEqual((None, None), (self.look().happened, self.look().fault))
        for said in (b"AUTHENTICATE", b"LIST", b"EXAMINE", b"UID SEARCH"):
            for answer in (CUT, b"* BYE\r\n", b"what\r\n"):
                self.host.answers = {said: answer}
                finding = self.look()
                self.assertIsNone(finding.happened)
                self.assertIsNotNone(finding.fault)

    def test_marked_mailbox(self) -> None:
        """The mailbox that the server marks is looked into; else the one that the file names."""
        self.host.boxes["Gesendete Entwürfe & mehr"] = []
        self.host.boxes = {"INBOX": [], "[Gmail]/Gesendet": [], "Sent": []}
        self.host.uses = {"[Gmail]/Gesendet": r"\Sent"}
        self.outcome()
        self.assertEqual(1, len(self.host.boxes["[Gmail]/Gesendet"]))
        self.assertTrue(self.look().happened)
        self.host.uses = {}
        self.assertIsNone(self.look().happened)

    def test_draft(self) -> None:
        """A draft is saved with all that it will need, reaches nobody, and can be looked for."""
        outcome = self.outcome("save_draft", {**MAIL, "bcc": "dora@third.example"})
        self.assertIsNone(outcome.fault)
        (draft,) = self.host.boxes["Drafts"]
        self.assertIn(b"Bcc: dora@third.example", draft)
        self.assertEqual([], self.host.accepted)
        self.assertTrue(self.look("save_draft").happened)

    def test_draft_fails(self) -> None:
        """A draft that was refused was not saved; one whose acknowledgement was lost may have been."""
        self.host.answers = {b"APPEND": CUT}
        outcome = self.outcome("save_draft")
        self.assertEqual((False, True), (outcome.sent, outcome.fault and outcome.fault.retriable))
        self.host.answers = {b"LITERAL": CUT}
        outcome = self.outcome("save_draft")
        self.assertEqual((True, False), (outcome.sent, outcome.classified))
        self.host.answers = {b"APPEND": b"a4 OK done\r\n"}
        outcome = self.outcome("save_draft")
        self.assertEqual((False, "external_api_error"), (outcome.sent, outcome.fault and outcome.fault.kind))
        self.host.answers = {}
        del self.host.boxes["Drafts"]
        outcome = self.outcome("save_draft")
        self.assertEqual((False, True), (outcome.sent, outcome.classified))


class ReadingTests(MailCase):
    """``search_mail``, ``read_mail`` and ``list_mailboxes``."""

    def setUp(self) -> None:
        super().setUp()
        self.host.boxes["INBOX"] = [
            b"From: =?utf-8?q?J=C3=B6rg?= <jo@other.example>\r\nSubject: One\r\n\r\nfirst\r\n",
            (
                b"From: eve@other.example\r\nSubject: Two\r\n"
                b"Content-Type: text/html; charset=latin1\r\n\r\n<p>s\xe9cond</p>\r\n"
            ),
        ]

    def found(self, **inputs: JSON) -> Mapping[str, JSON]:
        """What a search finds."""
        outcome = self.outcome("search_mail", inputs)
        self.assertIsNone(outcome.fault)
        return outcome.output  # type: ignore[return-value]

    def test_search(self) -> None:
        """The newest message comes first, each with what stands in its head; the mailbox is opened to be read only."""
        found = self.found()
        self.assertEqual(("INBOX", 2), (found["mailbox"], found["found"]))
        listed: Any = found["messages"]
        newest, oldest = listed
        self.assertEqual((11, "Two", False), tuple(newest[each] for each in ("uid", "subject", "unread")))
        self.assertEqual("Jörg <jo@other.example>", oldest["from"])
        self.assertEqual(1, len(self.found(limit=1)["messages"]))  # type: ignore[arg-type]
        self.assertEqual([], self.found(text="nowhere")["messages"])
        self.assertFalse([each for each in self.host.heard if b"SELECT" in each or b" BODY[" in each])

    def test_criteria(self) -> None:
        """Everything that is looked for is said as IMAP has it, and nothing of it ends its quotes."""
        self.found(text='a"b\\c', since="2026-05-01", unread=True, **{"from": "Jörg"})
        (said,) = [each for each in self.host.heard if b"SEARCH" in each]
        self.assertTrue(
            said.endswith('UID SEARCH CHARSET UTF-8 UNSEEN FROM "Jörg" TEXT "a\\"b\\\\c" SINCE 1-May-2026'.encode())
        )

    def test_injection(self) -> None:
        """No input of a read can hold a line break, or be something else than it should."""
        connector = self.host.connector()
        for operation, inputs in (
            ("search_mail", {"text": "a\r\na9 DELETE INBOX"}),
            ("search_mail", {"mailbox": "INBOX\n"}),
            ("search_mail", {"since": "yesterday"}),
            ("search_mail", {"limit": 51}),
            ("search_mail", {"limit": True}),
            ("search_mail", {"unread": "yes"}),
            ("search_mail", {"from": "\ud800"}),
            ("search_mail", {"text": "x" * 501}),
            ("search_mail", {"all": True}),
            ("read_mail", {"uid": "1:*"}),
            ("read_mail", {"uid": 0}),
            ("read_mail", {}),
            ("read_mail", {"uid": 1, "mailbox": "a\0"}),
            ("list_mailboxes", {"reference": "x"}),
        ):
            self.assertRaises(InvalidRequest, connector.prepare, operation, inputs, BASE, "k")

    def test_read(self) -> None:
        """A message is read with its text decoded, and stays unread."""
        outcome = self.outcome("read_mail", {"uid": 11})
        assert isinstance(outcome.output, Mapping)
        self.assertEqual("<p>sécond</p>\r\n", outcome.output["text"])
        self.assertEqual((11, "Two", []), tuple(outcome.output[each] for each in ("uid", "subject", "attachments")))
        missing = self.outcome("read_mail", {"uid": 99}).fault
        self.assertIn("there is none in INBOX", (missing and missing.message) or "")
        missing = self.outcome("read_mail", {"uid": 9, "mailbox": "Nowhere"}).fault
        self.assertIn("no such mailbox", (missing and missing.message) or "")

    def test_parts(self) -> None:
        """Of a message with parts the plain text is read, and its attachments are named."""
        mail = {**MAIL, "attachments": [{"name": "ü.csv", "media_type": "text/csv", "text": "a,b"}]}
        self.outcome(inputs=mail)
        outcome = self.outcome("read_mail", {"uid": 10, "mailbox": "Sent"})
        assert isinstance(outcome.output, Mapping)
        self.assertEqual("Hello\r\n.dot\r\nBye\r\n", outcome.output["text"])
        self.assertEqual([{"name": "ü.csv", "media_type": "text/csv"}], outcome.output["attachments"])

    def test_large(self) -> None:
        """A message that is too large is not fetched."""
        self.host.boxes["INBOX"] = [b"x" * (8 * 1024 * 1024 + 1)]
        fault = self.outcome("read_mail", {"uid": 10}).fault
        self.assertIn("more than 8 MiB", (fault and fault.message) or "")

    def test_echo(self) -> None:
        """A message that holds the password is read without it."""
        self.host.boxes["INBOX"] = [b"Subject: hi\r\n\r\n" + PASSWORD.encode() + b"\r\n"]
        outcome = self.outcome("read_mail", {"uid": 10})
        assert isinstance(outcome.output, Mapping)
        self.assertEqual("[redacted]", str(outcome.output["text"]).strip())

    def test_hostile(self) -> None:
        """Whatever a server answers, a read ends with a failure that says so, and never with a crash."""
        for answer in (
            b"* 1 FETCH (UID 10 RFC822.SIZE {9999999999}\r\n",
            b"* 1 FETCH (UID 10 RFC822.SIZE {-1}\r\na4 OK\r\n",
            b"* 1 FETCH " + b"(" * 5000 + b"\r\na4 OK\r\n",
            b"* 1 FETCH " + b"(" * 5000 + b")" * 5000 + b"\r\na4 OK\r\n",
            b"* 1 FETCH " + b"x" * 300_000 + b"\r\na4 OK\r\n",
            b"* 1 FETCH (UID 10 RFC822.SIZE NIL)\r\na4 OK\r\n",
            b"* 1 FETCH (UID 11 RFC822.SIZE 5)\r\na4 OK\r\n",
            b"* 1 FETCH (UID 10 RFC822.SIZE " + b"9" * 5000 + b")\r\na4 OK\r\n",
            b"* 1 FETCH (UID " + b"9" * 5000 + b")\r\na4 OK\r\n",
            b"* x\r\n" * 20_001,
            b"+ \r\n" * 3 + b"a4 NO\r\n",
            b"\x00\xff\r\n",
            b"a9 OK\r\n",
            CUT,
        ):
            self.host.answers = {b"UID FETCH": answer}
            outcome = self.outcome("read_mail", {"uid": 10})
            self.assertIsNotNone(outcome.fault, answer)
        self.assertEqual([], self.flushLoggedErrors())

    def test_long_numbers(self) -> None:
        """A number that is longer than any can be is not understood, wherever it stands."""
        digits = b"9" * 5000
        for said, answer in (
            (b"EXAMINE", b"* %b EXISTS\r\na3 OK\r\n" % digits),
            (b"UID SEARCH", b"* SEARCH %b\r\na4 OK\r\n" % digits),
            (b"UID FETCH", b"* 1 FETCH (UID 11 RFC822.SIZE %b)\r\na5 OK\r\n" % digits),
        ):
            self.host.answers = {said: answer}
            fault = self.outcome("search_mail", {"limit": 1}).fault
            self.assertIn("cannot read", (fault and fault.message) or "", said)

    def test_many_words(self) -> None:
        """An answer of millions of words is not understood: they would take the reactor's time, and memory."""
        for said, begin, number in (
            (b"CAPABILITY", b"* CAPABILITY AUTH=PLAIN", 1),
            (b"EXAMINE", b"*", 3),
            (b"UID SEARCH", b"* SEARCH", 4),
        ):
            for words in (1, 30_000, 800_000):
                parts = [begin + b" 12" * 30_000 + b"\r\n"] * (words // 30_000) or [begin + b" 12\r\n"]
                whole = [*parts, b"a%d OK\r\n" % number]
                self.host.answers = {said: b"".join(whole)}
                fault = self.outcome("search_mail", {"limit": 1}).fault
                too_much = "cannot read" in ((fault and fault.message) or "")
                self.assertEqual(words == 800_000, too_much, (said, words, fault))

    def test_many_turns(self) -> None:
        """A server that consents again and again, or begins literal after literal, is not listened to for long."""
        for said in (b"+\r\n" * 20_001, b"* " + b"{0}\r\n" * 1001):
            conversation = LineConversation(1024 * 1024)
            conversation.transport = StringTransport()
            asking = Deferred.fromCoroutine(ImapSession(conversation).command("the command", b"NOOP"))
            conversation.dataReceived(said)
            self.failureResultOf(asking, NotUnderstood)

    def test_hostile_messages(self) -> None:
        """A message that is made to be hard to read is read in time in proportion to its length."""
        for source in (
            b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(3000)),
            b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 100_000,
            b"Content-Type: text/plain; " + b"a=b; " * 200_000 + b"\r\n\r\nx",
            b"Subject: " + b"=?utf-8?q?a?= " * 100_000 + b"\r\n\r\nx",
            b"X: y\r\n" * 200_000,
            b"Content-Type: text/plain; charset=no-such\r\nContent-Transfer-Encoding: base64\r\n\r\n*",
            b"Content-Type: multipart/mixed; boundary=\r\n\r\n--\r\n",
            b"Content-Type: text/plain; charset=Punycode\r\n\r\na-" + b"a" * 300_000,
            b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
            + (b"--b\r\nContent-Disposition: x; filename*=punycode''a-" + b"a" * 31_000 + b"\r\n\r\nx\r\n") * 100,
        ):
            self.assertLess(seconds(partial(read_message, 1, source)), 2)

    def test_found_in_time(self) -> None:
        """Headers that are made to be hard to decode are shown as they came: they are read where nothing else waits."""
        word = b"=?punycode?q?a-" + b"a" * 1900 + b"?="
        head = b"".join(name + b": " + word + b"\r\n" for name in (b"From", b"To", b"Cc", b"Subject"))
        self.assertEqual(word.decode(), summarize(1, {b"BODY": head})["subject"])
        self.assertLess(seconds(partial(summarize, 1, {b"BODY": head})), 0.01)

    def test_charsets(self) -> None:
        """A text, an encoded word and a file's name are decoded by their charset; an unknown one is taken for UTF-8."""
        head = b"Content-Type: text/plain; charset=%b\r\nSubject: =?%b?q?=C4?=\r\n"
        head += b"Content-Disposition: attachment; filename*=%b''%%C4.txt\r\n\r\n\xc4"
        for charset, letter in ((b"ISO-8859-1", "Ä"), (b"koi8-r", "д"), (b"windows_1253", "Δ"), (b"cp037", "D")):
            read = read_message(1, head % ((charset,) * 3))
            self.assertEqual((letter, [letter]), (read["subject"], [each["name"][0] for each in read["attachments"]]))  # type: ignore[index,call-overload,union-attr]
            plain = b"Content-Type: text/plain; charset=" + charset + b"\r\n\r\n\xc4"
            self.assertEqual(letter, read_message(1, plain)["text"])
        self.assertEqual("ä", read_message(1, b"Content-Type: text/plain; charset=idna\r\n\r\n\xc3\xa4")["text"])

    def test_truncated(self) -> None:
        """Of a long text the beginning is read, and that it is one is said."""
        for letter in ("a", "\U0001f600"):
            for count, truncated in ((100_000, False), (100_001, True)):
                head = b"Content-Type: text/plain; charset=utf-8\r\n\r\n"
                read = read_message(1, head + (letter * count).encode())
                self.assertEqual((letter * 100_000, truncated), (read["text"], read["truncated"]))

    @given(st.binary(max_size=300) | st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join))
    def test_wild_messages(self, source: bytes) -> None:
        """Whatever a message is, what is read of it can be JSON."""
        canonical(read_message(1, source))

    @given(st.binary(max_size=200) | st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join))
    def test_wild_responses(self, text: bytes) -> None:
        """Whatever a server says is taken apart, or is not understood."""
        with contextlib.suppress(NotUnderstood):
            self.assertIsInstance(_parse_text(text), list)

    def test_responses(self) -> None:
        """Words, quoted texts, literals and lists are told apart, however deep they stand."""
        text = b'1 FETCH (UID 7 FLAGS (\\Seen) BODY[HEADER.FIELDS (FROM "TO")] {3}\r\n)\r\n "a\\"(b" NIL)'
        flags, items = [rb"\Seen"], b'BODY[HEADER.FIELDS (FROM "TO")]'
        expected = [b"1", b"FETCH", [b"UID", b"7", b"FLAGS", flags, items, b")\r\n", b'a"(b', b"NIL"]]
        self.assertEqual(expected, _parse_text(text))
        self.assertEqual([b"LIST", [], b"/", b""], _parse_text(b'LIST () "/" ""'))
        for broken in (b"(", b")", b'"a', b"a]", b"{3}", b"(()"):
            self.assertRaises(NotUnderstood, _parse_text, broken)

    def test_logins(self) -> None:
        """IMAP takes the password by PLAIN, else by LOGIN; where both are disabled nothing is said of it."""
        self.host.capabilities = b"IMAP4rev1"
        self.assertIsNone(self.outcome("list_mailboxes", {}).fault)
        self.assertTrue(any(b' LOGIN "ada@mail.example" "' in each for each in self.host.heard))
        self.host.capabilities = b"IMAP4rev1 LOGINDISABLED"
        fault = self.outcome("list_mailboxes", {}).fault
        self.assertIn("offers none", (fault and fault.message) or "")
        self.host.capabilities = b"IMAP4rev1 AUTH=PLAIN"
        self.host.secrets = ()
        fault = self.outcome("list_mailboxes", {}).fault
        self.assertIn("refused the login", (fault and fault.message) or "")

    def test_not_now(self) -> None:
        """A server that takes no login now says nothing of the credential, which is kept as it is."""
        for said, refusals in ((b"[UNAVAILABLE] later", 0), (b"[InUse] busy", 0), (b"[AUTHENTICATIONFAILED] no", 1)):
            self.host.answers = {b"AUTHENTICATE": b"a2 NO %b\r\n" % said}
            credential = MemoryCredential(b"s3cret-value")
            fault = self.successResultOf(self.start("list_mailboxes", {}, credential=credential)).fault
            self.assertIn("refused the login", (fault and fault.message) or "")
            self.assertEqual(len(credential.refusals), refusals, said)

    def test_preauth(self) -> None:
        """A server that claims that somebody is logged in already is not believed."""
        self.host.answers = {b"CONNECT": b"* PREAUTH welcome\r\n"}
        self.assertIsNotNone(self.outcome("list_mailboxes", {}).fault)
        self.assertEqual([], self.host.heard)

    def test_in_thread(self) -> None:
        """A message is taken apart in another thread where there is one."""
        called: list[object] = []

        async def call(work: Any, *given: Any) -> Any:
            called.append(work)
            return work(*given)

        connector = evolve(self.host.connector(), in_thread=call)
        request = connector.prepare("read_mail", {"uid": 10}, BASE, "k")
        reading = Deferred.fromCoroutine(connector.read(request, basic(), 30))
        self.host.service.advance(0)
        self.assertIsNone(self.successResultOf(reading).fault)
        self.assertEqual(1, len(called))
