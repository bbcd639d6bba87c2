"""Nothing that a foreign value holds acts on the terminal, hides, or passes for a line of ours."""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli import _output
from aileron.values import JSON

WILD = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b\x07\r\n\t\x7f\x9b\u202e\u200b\u2028[]{}%│")), max_size=40
)
WILD_JSON: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | WILD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WILD, inner, max_size=3),
    max_leaves=5,
)


def printed(call: Callable[[], object]) -> str:
    """What a call prints, on both streams."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        call()
    return out.getvalue()


class ForeignTextTests(SynchronousTestCase):
    def harmless(self, text: str) -> None:
        """Assert that only line feeds are left of what acts or hides."""
        left = [c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
        self.assertEqual(left, [])

    @settings(deadline=None, max_examples=150)
    @given(WILD)
    def test_one_line(self, text: str) -> None:
        """A value in a line of ours stays in that line, and its braces mean nothing."""
        for say in (_output.say, _output.note, _output.complain, _output.heading):
            shown = printed(lambda say=say: say("it is {value}!", value=text))  # type: ignore[misc]
            self.harmless(shown)
            self.assertEqual(shown.count("\n"), 1)

    @settings(deadline=None, max_examples=150)
    @given(WILD)
    def test_margin(self, text: str) -> None:
        """Each line of a text of many lines stands behind a margin."""
        shown = printed(lambda: _output.block(text, "  "))
        self.harmless(shown)
        self.assertEqual([line for line in shown.split("\n")[:-1] if not line.startswith("  │ ")], [])

    @settings(deadline=None, max_examples=150)
    @given(st.dictionaries(WILD, WILD_JSON, max_size=3))
    def test_values(self, given_values: dict[str, JSON]) -> None:
        """Labels and values, whatever they are, begin no line of their own."""
        shown = printed(lambda: _output.values(given_values, "  "))
        self.harmless(shown)
        self.assertEqual([line for line in shown.split("\n")[:-1] if not line.startswith("  ")], [])

    @settings(deadline=None, max_examples=100)
    @given(st.lists(st.tuples(WILD, WILD), max_size=4))
    def test_table(self, rows: list[tuple[str, str]]) -> None:
        """A table has a line for its titles and one a row."""
        shown = printed(lambda: _output.table(("A", "B"), rows))
        self.harmless(shown)
        self.assertEqual(shown.count("\n"), 1 + len(rows))

    @settings(deadline=None, max_examples=100)
    @given(WILD_JSON)
    def test_json(self, value: JSON) -> None:
        """JSON for programs is printable ASCII and says the same value."""
        shown = printed(lambda: _output.say_json(value))
        self.assertTrue(shown.isascii())
        self.harmless(shown)
        self.assertEqual(json.loads(shown), value)


class LayoutTests(SynchronousTestCase):
    def test_columns(self) -> None:
        """Columns stay below each other; a value of one line stands beside its label, one of many below it."""
        shown = printed(lambda: _output.table(("NAME", "N"), [("日本", 1), ("ab", None)])).splitlines()
        self.assertEqual(shown, ["NAME  N", "日本  1", "ab    -"])
        self.assertEqual(printed(lambda: _output.value("a", "b", width=3)), "a    b\n")
        self.assertEqual(printed(lambda: _output.value("a", "b\nc", multiline=True)), "a\n  │ b\n  │ c\n")
        self.assertEqual(printed(lambda: _output.value("a", {"b": 1})), 'a\n  │ {\n  │   "b": 1\n  │ }\n')
