"""Of what comes from outside: JSON and text, and the comparison that tells a failure in a well-formed answer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, canonical
from aileron.connectors._decode import decode, show_safely
from aileron.connectors.kinds.http._when import condition
from tests.extent import examples


class ForeignTests(SynchronousTestCase):
    """JSON and text of a service."""

    def test_what_cannot_be_carried(self) -> None:
        """A large integer comes as its digits, a lone surrogate as a replacement; both can be digested."""
        value = decode(b'{"id": 12345678901234567890, "n": 9007199254740993, "s": "\\ud800x", "m": "\\ud83d\\ude00"}')
        expected = {"id": "12345678901234567890", "n": "9007199254740993", "s": "\ufffdx", "m": "\U0001f600"}
        self.assertEqual(expected, value)
        canonical(value)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.binary())
    def test_wild(self, body: bytes) -> None:
        """Any bytes are read into something that can be digested, or refused."""
        try:
            canonical(decode(body))
        except ValueError:
            self.assertRaises(ValueError, decode, body)

    def test_depth(self) -> None:
        """What is deeper than 64 levels is refused, whatever it is, and wherever it stands."""
        self.assertEqual(decode(b"[" * 64 + b"]" * 64), decode(b" " + b"[" * 64 + b"]" * 64))
        for deep in (b"[" * 64 + b"1" + b"]" * 64, b'[1,{"a":' + b"[" * 63 + b"]" * 63 + b"}]", b"[" * 99_999):
            self.assertRaises(ValueError, decode, deep)

    def test_shown(self) -> None:
        """Controls, escapes, bidi and zero-width characters become visible, and long text is cut."""
        self.assertEqual("a↵␛[0m\\u202e\\u200bé漢", show_safely("a\n\x1b[0m\u202e\u200bé漢"))
        self.assertEqual("xxx…", show_safely("xxxx", 3))


class ConditionTests(SynchronousTestCase):
    """One comparison."""

    def test_holds(self) -> None:
        """Equality is of type and value; a path that leads nowhere is missing and equals nothing, a null is there."""
        cases: tuple[tuple[str, JSON, bool], ...] = (
            ("ok == false", {"ok": False}, True),
            ("ok == false", {"ok": 0}, False),
            ("ok == 0", {"ok": False}, False),
            ("ok == null", {}, False),
            ('data.items.1.state == "bad"', {"data": {"items": [{}, {"state": "bad"}]}}, True),
            ("ok != true", {}, True),
            ("ok != true", [1], True),
            ("ok != true", {"ok": True}, False),
            ("id missing", {}, True),
            ("id missing", "id", True),
            ("id missing", {"id": None}, False),
            ("items.2 missing", {"items": [1, 2]}, True),
        )
        for text, answer, holds in cases:
            self.assertIs(condition(text).holds(answer), holds, (text, answer))

    def test_nonsense(self) -> None:
        """Anything else is no condition."""
        nonsense = (
            "",
            "ok",
            "ok = 1",
            "ok == ",
            "ok == yes",
            "ok == [1]",
            "a..b == 1",
            "ok and bad",
            "== 1",
            "ok == NaN1",
        )
        for text in nonsense:
            self.assertRaises(ValueError, condition, text)
