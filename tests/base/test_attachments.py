"""Attachments in outputs."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.attachments import UNKNOWN_MEDIA_TYPE, Attachment, attached, media_type_of, regular_base64, set_apart
from aileron.base.json import JSON

PICTURE: JSON = {"media_type": "image/png", "base64": "AAEC"}
NOTES: JSON = {"media_type": "text/csv", "text": "a;ü"}


class AttachmentTests(SynchronousTestCase):
    """One alone."""

    @given(st.binary())
    def test_bytes(self, content: bytes) -> None:
        """Whatever the bytes, they and their number are those that came."""
        attachment = attached("image/png", content)
        self.assertEqual((attachment.content, attachment.size, attachment.text), (content, len(content), None))

    @given(st.binary())
    def test_text(self, content: bytes) -> None:
        """What is called a text is one if it can be; nothing is lost but a mark of the byte order."""
        for media_type in ("text/plain", "application/json", "image/svg+xml"):
            attachment = attached(media_type, content)
            self.assertEqual(attachment.content, content.removeprefix(b"\xef\xbb\xbf") if attachment.text else content)
            self.assertEqual(attachment.size, len(attachment.content))

    def test_which_is_a_text(self) -> None:
        """A written type, in UTF-8, without NUL."""
        self.assertEqual(attached("text/csv", "ü".encode()).as_output(), {"media_type": "text/csv", "text": "ü"})
        for media_type, content in (("application/pdf", b"a"), ("text/plain", b"\xff"), ("text/plain", b"a\0")):
            encoded = base64.b64encode(content).decode()
            self.assertEqual(attached(media_type, content).as_output(), {"media_type": media_type, "base64": encoded})

    def test_media_type(self) -> None:
        """Of a header its first part, in lower case; of what is none that nobody knows."""
        self.assertEqual(media_type_of("Text/CSV; charset=utf-8"), "text/csv")
        self.assertEqual(media_type_of("image/svg+xml"), "image/svg+xml")
        for odd in ("", "png", "image/", "image/p ng", "a/b/c", "image/<b>", f"image/{'p' * 65}"):
            self.assertEqual(media_type_of(odd), UNKNOWN_MEDIA_TYPE)


class RegularTests(SynchronousTestCase):
    """Base64 in the ways of services."""

    @given(st.binary(), st.integers(1, 80))
    def test_ways(self, content: bytes, width: int) -> None:
        """Folded, for URLs, without padding: it is the same."""
        usual = base64.b64encode(content).decode()
        lines = [usual[at : at + width] for at in range(0, len(usual), width)]
        for way in (usual, "\r\n".join(lines), base64.urlsafe_b64encode(content).decode().rstrip("=")):
            self.assertEqual(regular_base64(way), usual)

    def test_none(self) -> None:
        """What is no base64 is not taken for any."""
        for odd in ("A", "AA[redacted]", "AA=A", "ÄÄÄÄ", "AAAA!"):
            self.assertIsNone(regular_base64(odd), odd)


class SetApartTests(SynchronousTestCase):
    """An output without its attachments."""

    def test_anywhere(self) -> None:
        """In the order in which they stand, however deep; the output itself may be one."""
        output, attachments = set_apart({"caption": "c", "shown": [PICTURE, {"notes": NOTES}], "n": 1})
        self.assertEqual(
            output,
            {
                "caption": "c",
                "shown": ["[attachment 1: image/png, 3 bytes]", {"notes": "[attachment 2: text/csv, 4 bytes]"}],
                "n": 1,
            },
        )
        self.assertEqual(attachments, (Attachment("image/png", base64="AAEC"), Attachment("text/csv", "a;ü")))
        self.assertEqual(set_apart(PICTURE)[0], "[attachment 1: image/png, 3 bytes]")

    def test_twice(self) -> None:
        """The same thing has one number, wherever it stands."""
        told = "[attachment 1: image/png, 3 bytes]"
        other = "[attachment 2: text/csv, 4 bytes]"
        output, attachments = set_apart({"output": PICTURE, "steps": {"a": PICTURE, "b": NOTES}})
        self.assertEqual(output, {"output": told, "steps": {"a": told, "b": other}})
        self.assertEqual([each.media_type for each in attachments], ["image/png", "text/csv"])

    def test_looks_like_one(self) -> None:
        """What is not exactly one stays as it is."""
        others: Sequence[JSON] = (
            {"media_type": "image/png"},
            {"media_type": "image/png", "base64": "A"},
            {"media_type": "image/png", "base64": ""},
            {"media_type": "image/png", "base64": "AA\nEC"},
            {"media_type": "image/png", "base64": 1},
            {"media_type": "text", "text": "a"},
            {"media_type": 1, "text": "a"},
            {"media_type": "text/plain", "text": "a", "more": 1},
            "image/png",
            None,
        )
        for odd in others:
            self.assertEqual(set_apart(odd), (odd, ()), odd)
