"""When two requests are the same."""

from __future__ import annotations

from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.denials import normalize_text, request_digest
from aileron.values import JSON

_TEXTS = st.text(max_size=60)
_VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=8,
)


def same(one: JSON, other: JSON) -> bool:
    """Whether they have one digest."""
    return request_digest(one) == request_digest(other)


class SameRequestTests(SynchronousTestCase):
    """Arguments side by side."""

    def test_kinds(self) -> None:
        """Numbers, truth values, texts and nothing are of kinds of their own."""
        values: list[JSON] = [1, 1.0, True, "1", None, [1], {"a": 1}, "", 0, False]
        self.assertEqual(len({request_digest(each) for each in values}), len(values))

    def test_texts(self) -> None:
        """Case, whitespace and other forms of a letter make no difference; another word or sign does."""
        for other in ("hello world", "HELLO \n world", "\tHello\u00a0\u3000World ", "ｈｅｌｌｏ world"):
            self.assertTrue(same("Hello World", other), other)
        for other in ("hello word", "helloworld", "hello world 2", "", "hello, world", "Hello World!", "hello-world"):
            self.assertFalse(same("Hello World", other), other)
        self.assertTrue(same("Straße \u00e9", "STRASSE e\u0301"))
        self.assertFalse(same("!", "?"))

    def test_recursive(self) -> None:
        """Lists are compared element by element, objects by their names, at any depth."""
        self.assertTrue(same({"to": ["Anna", {"n": "bela"}], "x": 1}, {"x": 1, "to": ["anna ", {"n": "Bela"}]}))
        self.assertFalse(same({"to": ["Anna", "bela"]}, {"to": ["bela", "anna"]}))
        self.assertFalse(same({"to": ["Anna"]}, {"to": ["Anna", "Anna"]}))
        self.assertFalse(same({"to": "Anna"}, {"to": "Anna", "cc": None}))
        self.assertFalse(same({"to": "Anna"}, {"To": "Anna"}))

    @settings(deadline=None, max_examples=100)
    @given(_VALUES)
    def test_total(self, value: JSON) -> None:
        """Whatever JSON can say has a digest, and one only."""
        self.assertTrue(same(value, value))

    @settings(deadline=None, max_examples=100)
    @given(
        st.lists(st.text(alphabet="aBcé1,", min_size=1, max_size=8), max_size=5), st.sampled_from((" ", "\n\t ", "　"))
    )
    def test_written_otherwise(self, words: list[str], between: str) -> None:
        """Whitespace and case alone never make another request."""
        self.assertTrue(same(" ".join(words), between + between.join(words).upper()))

    def test_far_behind(self) -> None:
        """A difference at the end of a long text is one."""
        self.assertFalse(same("é" * 50_000 + "a", "é" * 50_000 + "b"))

    def test_bounded(self) -> None:
        """Huge texts, and many marks on one letter, are compared in no time."""
        for text in ("word " * 1_000_000, "wörd " * 100_000, "a" + "\u0301\u0323" * 200_000):
            began = process_time()
            normalize_text(text)
            self.assertLess(process_time() - began, 1.0)
