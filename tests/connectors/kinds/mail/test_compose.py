"""Of a message as it leaves: what it is made of, and that nothing in it can be something else."""

from __future__ import annotations

from collections.abc import Mapping
from email import message_from_bytes
from email.header import decode_header, make_header
from email.policy import default
from email.utils import parseaddr

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors.kinds.mail.compose import Composed, compose, read_mail_address
from aileron.model.errors import InvalidRequest

ADA = read_mail_address("Ada Lövelace <ada@example.org>")
HEADERS = {"From", "To", "Cc", "Reply-To", "Subject", "Message-ID", "In-Reply-To", "References"}
BODY = {"MIME-Version", "Content-Type", "Content-Transfer-Encoding"}
WILD = (
    st.text(max_size=60)
    | st.builds(lambda name: f"{name * 7} <bob@example.net>", st.text('"\\\\.ü', max_size=55))
    | st.sampled_from(["a\r\nBcc: eve@evil.example", "=?utf-8?q?x=0ABcc:_eve?=", "\u2028", "\x85"])
)


def composed(**inputs: JSON) -> Composed:
    """A message of these inputs."""
    return compose(ADA, {"to": "bob@example.net", "subject": "Hi", "text": "Hello", **inputs}, "effect-1")


class ComposeTests(SynchronousTestCase):
    """Messages."""

    def test_shape(self) -> None:
        """A message of plain text is as plain as it can be."""
        head, _, body = composed().content.partition(b"\r\n\r\n")
        self.assertEqual(
            [
                b"From: =?utf-8?q?Ada_L=C3=B6velace?=",
                b" <ada@example.org>",
                b"To: bob@example.net",
                b"Subject: Hi",
                b"Message-ID: " + composed().message_id.encode(),
                b'Content-Type: text/plain; charset="utf-8"',
                b"Content-Transfer-Encoding: 7bit",
                b"MIME-Version: 1.0",
            ],
            head.split(b"\r\n"),
        )
        self.assertEqual(b"Hello\r\n", body)

    def test_refused(self) -> None:
        """What is no message is refused, and why is said without a word of it."""
        for inputs, words in (
            ({"subject": "a\r\nBcc: eve@evil.example"}, "'subject' must not contain line breaks"),
            ({"subject": "a\nb"}, "line breaks"),
            ({"subject": "a\x00b"}, "control characters"),
            ({"subject": 5}, "must be a text"),
            ({"to": "bob@example.net\r\nBcc: eve@evil.example"}, "'to' must not contain line breaks"),
            ({"to": "Bob\n <bob@example.net>"}, "line breaks"),
            ({"to": "bob@example.net, eve@evil.example"}, "must be an address"),
            ({"to": "bob"}, "must be an address"),
            ({"to": "böb@example.net"}, "in ASCII"),
            ({"to": "bob@exa mple.net"}, "proper host"),
            ({"to": "<bob@example.net> RCPT TO:<eve@evil.example>"}, "must be an address"),
            ({"to": '"' * 500 + " <bob@example.net>"}, "400 characters at most"),
            ({"to": []}, "is needed"),
            ({"to": [f"a{number}@b.example" for number in range(101)]}, "100 at most"),
            ({"to": {"a": 1}}, "must be an address"),
            ({"cc": [5]}, "must be an address"),
            ({"in_reply_to": "<a@b>\r\nX: y"}, "line breaks"),
            ({"in_reply_to": "a@b"}, "must be a Message-ID"),
            ({"text": "\ud800"}, "proper Unicode"),
            ({"text": None}, "must be a text"),
            ({"attachments": "x"}, "must be an array"),
            ({"attachments": [{"name": "a\r\nb", "text": "x"}]}, "line breaks"),
            ({"attachments": [{"text": "x"}]}, "is needed"),
            ({"attachments": [{"name": "a", "base64": "***"}]}, "valid base64"),
            ({"attachments": [{"name": "a", "text": "x", "base64": "YQ=="}]}, "valid base64"),
            ({"attachments": [{"name": "a", "text": "x" * 5_000_000}]}, "more than 4 MiB"),
            ({"from": "eve@evil.example"}, "unknown to the operation"),
            ({"headers": {"X": "y"}}, "unknown to the operation"),
        ):
            error = self.assertRaises(InvalidRequest, composed, **inputs)
            self.assertIn(words, error.message)
            self.assertNotIn("evil", error.message)

    def test_same_bytes(self) -> None:
        """The same inputs make the same bytes, attachments included."""
        attachments: JSON = [{"name": "a.bin", "base64": "AAEC"}, {"name": "b.txt", "text": "b"}]
        self.assertEqual(composed(attachments=attachments), composed(attachments=attachments))

    def test_attachment_of_any_kind(self) -> None:
        """An attachment arrives as it was given, whatever it is called, and none of its lines is the message's."""
        text = "Subject: x\n\n--b\nfoo\rbar\n.\nMAIL FROM:<eve@evil.example>\r\n"
        for kind, sent_as in (
            *((each, each) for each in ("text/csv", "application/pdf", "x/y")),
            *((f"message/{each}", "application/octet-stream") for each in ("rfc822", "partial", "delivery-status")),
            *((f"multipart/{each}", "application/octet-stream") for each in ("mixed", "x")),
        ):
            content = composed(attachments=[{"name": "a", "media_type": kind, "text": text}]).content
            self.assertNotRegex(content, rb"(?<!\r)\n|\r(?!\n)", kind)
            self.assertNotIn(b"evil.example", content)
            message = message_from_bytes(content, policy=default)
            (attachment,) = message.iter_attachments()
            self.assertEqual(
                (sent_as, text.encode()), (attachment.get_content_type(), attachment.get_payload(decode=True))
            )

    def test_reply(self) -> None:
        """A reply names the message that it replies to as it is, however long its identifier is."""
        identifier = "<" + "a" * 200 + "@example.net>"
        message = message_from_bytes(composed(in_reply_to=identifier, reply_to="team@example.org").content)
        self.assertEqual([identifier] * 2, [message["In-Reply-To"], message["References"]])
        self.assertEqual("team@example.org", message["Reply-To"])

    def test_encoded_word(self) -> None:
        """What looks like an encoded word is not read as one: the recipient sees what was approved."""
        words = "=?utf-8?q?Pay?= now"
        message = message_from_bytes(composed(subject=words, to=f"{words} <bob@example.net>").content)
        self.assertEqual(words, read(message["Subject"]))
        self.assertEqual(words, read(parseaddr(message["To"].replace("\r\n", ""))[0]))

    def test_recipients_once(self) -> None:
        """Whoever is named twice gets one message."""
        sent = composed(to=["bob@example.net", "Bob <bob@example.net>"], cc="bob@example.net", bcc="eve@example.net")
        self.assertEqual(("bob@example.net", "eve@example.net"), sent.recipients)

    @given(st.dictionaries(st.sampled_from(["to", "cc", "reply_to", "subject", "text", "in_reply_to"]), WILD))
    def test_wild(self, inputs: Mapping[str, JSON]) -> None:
        """Whatever is given, a message has our headers, each once, in ASCII lines that are not too long, or is none."""
        try:
            made = composed(**inputs)
        except InvalidRequest:
            return
        head = made.content.partition(b"\r\n\r\n")[0]
        message = message_from_bytes(made.content, policy=default)
        self.assertLessEqual(set(message), HEADERS | BODY)
        self.assertEqual(len(message.keys()), len(set(message.keys())))
        self.assertTrue(head.isascii())
        self.assertTrue(all(len(line) <= 998 for line in made.content.split(b"\r\n")))
        self.assertNotRegex(made.content, rb"(?<!\r)\n|\r(?!\n)")
        self.assertEqual({"bob@example.net"} if "to" not in inputs else set(made.recipients), set(made.recipients))

    @given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=80))
    def test_as_given(self, words: str) -> None:
        """A subject, a name and a text reach the recipient as they were shown."""
        name = words.replace("<", "").replace(">", "").replace('"', "").strip()
        made = composed(subject=words, text=words, to=f"{name} <bob@example.net>")
        message = message_from_bytes(made.content)
        self.assertEqual(words.split(), read(message["Subject"]).split())
        content = message.get_payload(decode=True)
        assert isinstance(content, bytes)
        self.assertEqual(words, content.decode("utf-8").rstrip("\r\n"))
        shown, address = parseaddr(message["To"].replace("\r\n", ""))
        self.assertEqual((name.split(), "bob@example.net"), (read(shown).split(), address))


def read(header: str) -> str:
    """What a header says, decoded."""
    return str(make_header(decode_header(header)))
