"""Of what comes from outside: JSON and text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._decode import decode, show_safely
from aileron.values import canonical


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
        self.assertEqual("a\\u{a}\\u{1b}[0m\\u{202e}\\u{200b}é漢", show_safely("a\n\x1b[0m\u202e\u200bé漢"))

    def test_bounded(self) -> None:
        """Long text is cut."""
        self.assertEqual("xxx…", show_safely("xxxx", 3))
