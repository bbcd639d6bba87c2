"""Which writings of a secret are sought, and that a stream holds back no more than may become one."""

from __future__ import annotations

import base64
import html
from urllib.parse import quote

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.redaction import REDACTED, Redactor, SecretScanner, forms, written_forms
from tests.extent import examples

from .test_redactor import FORMS, SECRET

_MIXED = frozenset(("percent, lower case", "plus", "HTML", "folded"))
"""Forms that are found in whole texts alone: a stream is not searched for mixtures of writings, or for folded lines."""

KEY = b"sk-proj-AbC_123/4+5=ss"
_SECRETS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=6, max_size=60)


class FormTests(SynchronousTestCase):
    """The forms themselves, as others write them."""

    def test_usual(self) -> None:
        """Whatever usual encoders make of a key, alone or in a text, holds one of its forms."""
        scanner, raw = SecretScanner(SECRET.encode()), SECRET.encode()
        for name, (kind, written) in FORMS.items():
            self.assertEqual(scanner.kind_in(f"<{written}>".encode("latin-1")), None if name in _MIXED else kind, name)
        for kind, written in (
            ("json", "".join(f"\\u{byte:04X}" for byte in raw)),
            ("html", "".join(f"&#x{byte:X};" for byte in raw)),
            ("split", SECRET.encode("utf-16-be").decode("latin-1")),
        ):
            self.assertEqual(scanner.kind_in(f"<{written}>".encode("latin-1")), kind, written)
        quoted = SecretScanner(b"it's-a-secret")
        for written in (html.escape("it's-a-secret"), "it&#39;s-a-secret"):
            self.assertEqual(quoted.kind_in(written.encode()), "html", written)

    def test_escaped_base64(self) -> None:
        """Base64 whose signs are escaped in turn is found too."""
        key = b"\xfb\xff".hex().encode() + b"?>~?>~?>~"
        encoded = base64.b64encode(key).decode()
        self.assertIn("+", encoded + base64.b64encode(b"x" + key).decode() + base64.b64encode(b"xx" + key).decode())
        for shift in range(3):
            written = quote(base64.b64encode(b"x" * shift + key + b"y").decode(), safe="")
            self.assertEqual(SecretScanner(key).kind_in(written.encode()), "base64", written)

    def test_short(self) -> None:
        """A short key has no forms that chance would meet."""
        self.assertEqual({form.kind for form in written_forms("ab")}, {"plain", "url", "json", "html", "split"})
        self.assertEqual({form.kind for form in forms("ab")}, {"plain"})

    def test_shows_nothing(self) -> None:
        """No repr shows the secret."""
        self.assertNotIn("sk-", f"{SecretScanner(KEY)!r} {forms(KEY.decode())!r}")

    def test_dropped(self) -> None:
        """A short secret that ends in an escaped NUL or line break is found, however the rest of it is escaped."""
        for secret in ("0000'%00", "0000'%0a", "0000'\\x00", "0000'&#10;"):
            for form in written_forms(secret):
                self.assertNotIn("0000", Redactor.of(secret).text(f"<{form.text}>"), (secret, form.text))

    @settings(deadline=None, max_examples=examples(150))
    @given(_SECRETS, st.integers(0, 200))
    @example("<<<<<<", 0)
    @example("00000&#08;", 14)
    def test_both(self, secret: str, which: int) -> None:
        """What a stream is searched for, a whole text is too: nothing of one table is lost on the other."""
        every = written_forms(secret)
        self.assertLessEqual(set(forms(secret)), set(every))
        written = every[which % len(every)].text
        found = f" {written} "  # with no sign that could belong to the secret
        self.assertIn(Redactor.of(secret).text(found)[:2], (f" {REDACTED[0]}", " \u2588"), written)
        self.assertIsNotNone(SecretScanner(secret.encode()).kind_in(found.encode("latin-1", "replace")))


class UnfinishedTests(SynchronousTestCase):
    """What is held back of a stream."""

    @settings(deadline=None, max_examples=examples(150))
    @given(_SECRETS, st.integers(0, 200), st.integers(1, 400), st.binary(max_size=20))
    def test_beginning(self, secret: str, which: int, length: int, before: bytes) -> None:
        """The beginning of any form at the end of what came is held back, whole or more of it."""
        every = written_forms(secret)
        text = every[which % len(every)].text.encode("latin-1", "replace")
        begun = text[: length % len(text)]
        self.assertGreaterEqual(SecretScanner(secret.encode()).unfinished(before + begun), len(begun))

    def test_nothing(self) -> None:
        """Of what begins no form nothing is held back."""
        scanner = SecretScanner(KEY)
        for data in (b"", b"data: {}\n\n", b"sk-proj-AbX", KEY[1:]):
            self.assertEqual(scanner.unfinished(data), int(data[-1:] == b"s"), data)
