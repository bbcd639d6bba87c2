"""The body kind C{mail}: the message that is written, and what no input can do to it."""

from __future__ import annotations

from email import charset, message_from_bytes, policy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.connectors._template import ReferenceScope
from aileron.connectors.kinds.http._mail import write_mail
from aileron.model.errors import InvalidRequest
from tests.connectors.kinds.http.test_http import TRACKER

PARTS = {
    "to": "${in.to}",
    "cc": "${in.cc}",
    "subject": "${in.subject}",
    "message_id": "<${effect.uuid}@aileron.invalid>",
    "in_reply_to": "${in.reply}",
    "text": "${in.text}",
}
USUAL: dict[str, JSON] = {"to": "ada@example.org", "subject": "Hello", "text": "Hi"}


def written(**inputs: JSON) -> bytes:
    """The message with these inputs beside the usual ones."""
    return write_mail(PARTS, ReferenceScope({**USUAL, **inputs}, "key"))


def parsed(data: bytes) -> Any:
    """It as a mail program reads it."""
    return message_from_bytes(data, policy=policy.default)


class MailTests(SynchronousTestCase):
    def test_usual(self) -> None:
        """A mail program reads the inputs as they are; what was not given has no header; the date is the service's."""
        data = written(to=["ada@example.org", "bob+x@mail.example.org"], subject="Grüße, 你好", text="Hä?\nYes\r\n.\n")
        mail = parsed(data)
        self.assertEqual(mail["To"], "ada@example.org, bob+x@mail.example.org")
        self.assertEqual((mail["Subject"], mail["Cc"], mail["Date"]), ("Grüße, 你好", None, None))
        self.assertTrue(mail["Message-ID"].endswith("@aileron.invalid>"))
        self.assertEqual(mail.get_content(), "Hä?\r\nYes\r\n.\r\n")
        self.assertEqual(
            data,
            written(to="ada@example.org, bob+x@mail.example.org", subject="Grüße, 你好", text="Hä?\r\nYes\r\n.\r\n"),
        )

    def test_long_line(self) -> None:
        """A line that mail cannot carry is encoded, and comes out as it was."""
        text = "ä" * 3000 + "\n= end\n"
        data = written(text=text)
        self.assertLessEqual(max(map(len, data.split(b"\r\n"))), 998)
        self.assertEqual(parsed(data).get_content(), text.replace("\n", "\r\n"))

    def test_encoded_word(self) -> None:
        """A subject that looks encoded is read as it was approved, and not as what it decodes to."""
        for subject in ("=?utf-8?q?Pay_EVIL?=", "Re: =?utf-8?b?UGF5?= now", "=?", "x" * 250, "é" * 250):
            self.assertEqual(parsed(written(subject=subject))["Subject"], subject)

    def test_registry(self) -> None:
        """What a library tells the process of a charset changes no byte: the message is the one that was approved."""
        before = written(subject="Grüße")
        charset.add_charset("utf-8", charset.QP, charset.QP, "utf-8")  # as apprise does where it is imported
        self.addCleanup(charset.add_charset, "utf-8", charset.SHORTEST, charset.BASE64, "utf-8")
        self.assertEqual(written(subject="Grüße"), before)

    def test_refused(self) -> None:
        """What is no address, subject or text is refused by the name of its input, as is a line break in a header."""
        wrong: dict[str, tuple[JSON, ...]] = {
            "to": (
                "",
                "ada",
                "ada@example.org\r\nBcc: eve@example.org",
                "Ada <ada@example.org>",
                ["a@b", 1],
                7,
                {},
                "a@b,,c@d",
                "ü@example.org",
                ["ada@example.org"] * 501,
                "a@b\0",
            ),
            "subject": ("a\nb", "a\rb", "a\u2028b", "a\u2029b", "a\x85b", "\x1b[1m", "\x7f", "x" * 251, "\0", 5, ["a"]),
            "reply": ("<1>\r\nBcc: eve@example.org", "<1>\n", "ü", " "),
            "text": (5, "a\0b", ["a"], "\ud800"),
        }
        for name, values in wrong.items():
            for value in values:
                with self.assertRaises(InvalidRequest) as raised:
                    written(**{name: value})
                self.assertIn(repr(name), raised.exception.fault().message, repr(value))

    @given(
        st.fixed_dictionaries(
            {}, optional={name: st.text() | st.lists(st.text()) for name in ("to", "cc", "subject", "reply", "text")}
        )
    )
    def test_wild(self, inputs: dict[str, JSON]) -> None:
        """Whatever the inputs, the headers are ours, each once, and the text is what was given."""
        try:
            data = written(**inputs)
        except InvalidRequest:
            return
        mail = parsed(data)
        self.assertEqual(len(set(mail.keys())), len(mail.keys()))
        ours = {"To", "Cc", "Subject", "Message-ID", "In-Reply-To"}
        mime = {"MIME-Version", "Content-Type", "Content-Transfer-Encoding"}
        self.assertLessEqual(set(mail.keys()), ours | mime)
        head, blank, _ = data.partition(b"\r\n\r\n")
        self.assertTrue(blank)
        self.assertTrue(head.isascii())
        self.assertNotIn(b"\n", head.replace(b"\r\n", b""))

    def test_faults(self) -> None:
        """A part that a mail has not, one that is no text, and one that is missing are told with their line."""
        text = TRACKER.replace("json = {", 'mail = { to = 5, attachment = "x" } # {', 1)
        problems = [each.message for each in read_file(text.encode(), "tracker.toml").problems]
        for part in ("attachment", "must be a text", "`text` is missing"):
            self.assertTrue(any(part in each for each in problems), (part, problems))
