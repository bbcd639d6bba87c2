"""Of what comes from outside: JSON, text, and echoes of the secret."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._decode import decode
from aileron.connectors._foreign import shown
from aileron.connectors._redact import REDACTED, Echo
from aileron.values import canonical

_VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=12, max_size=40)


class DecodeTests(SynchronousTestCase):
    """JSON of a service."""

    def test_what_cannot_be_carried(self) -> None:
        """A large integer comes as its digits, a lone surrogate as a replacement; both can be digested."""
        value = decode(b'{"id": 12345678901234567890, "n": 9007199254740993, "s": "\\ud800x", "m": "\\ud83d\\ude00"}')
        expected = {"id": "12345678901234567890", "n": "9007199254740993", "s": "\ufffdx", "m": "\U0001f600"}
        self.assertEqual(expected, value)
        canonical(value)

    def test_refused(self) -> None:
        """What is not JSON, not finite or too deep is refused."""
        for body in (b"", b"NaN", b"1e999", b"-Infinity", b"\xff", b"{", b"[" * 70 + b"]" * 70, b"[" * 100_000):
            self.assertRaises(ValueError, decode, body)

    @settings(deadline=None, max_examples=100)
    @given(st.binary())
    def test_wild(self, body: bytes) -> None:
        """Any bytes are read into something that can be digested, or refused."""
        try:
            canonical(decode(body))
        except ValueError:
            self.assertRaises(ValueError, decode, body)


class ShownTests(SynchronousTestCase):
    """Text of a service."""

    def test_unseen_characters(self) -> None:
        """Controls, escapes, bidi and zero-width characters become visible."""
        self.assertEqual("a\\u{a}\\u{1b}[0m\\u{202e}\\u{200b}é漢", shown("a\n\x1b[0m\u202e\u200bé漢"))

    def test_bounded(self) -> None:
        """Long text is cut."""
        self.assertEqual("xxx…", shown("xxxx", 3))


class EchoTests(SynchronousTestCase):
    """The secret in what comes back."""

    @settings(deadline=None, max_examples=150)
    @given(_VISIBLE, st.binary(max_size=5), st.binary(max_size=5))
    def test_every_form(self, secret: str, before: bytes, after: bytes) -> None:
        """Plain, URL, JSON, hexadecimal and base64 forms are found wherever they stand."""
        raw = before + secret.encode() + after
        for form in (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)):
            self.assertIn(REDACTED, Echo.of(secret).text(f"a {form} b"))
        for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
            self.assertIn(REDACTED, Echo.of(secret).text(encoded.decode()))
        for digits in (raw.hex(), raw.hex().upper()):
            self.assertIn(REDACTED, Echo.of(secret).text(digits))

    def test_numbers(self) -> None:
        """A secret of digits is found in a number."""
        self.assertEqual(
            {"n": REDACTED, "m": 1, "b": True}, Echo.of("1234567890").value({"n": 1234567890, "m": 1, "b": True})
        )

    def test_shows_nothing(self) -> None:
        """It does not show its secret."""
        self.assertNotIn("s3cret", repr(Echo.of("s3cret")))

    def test_no_secret(self) -> None:
        """Without a secret nothing is touched."""
        self.assertEqual([None, 1, "x"], Echo.of().value([None, 1, "x"]))
