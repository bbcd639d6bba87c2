"""What differs between two texts, word by word, and that this never takes long."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.template import flattenString

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.web.approvals.reading import MOST_WORD_STEPS, WordComparison


class WordTests(SynchronousTestCase):
    """One text over another."""

    def drawn(self, before: JSON, after: JSON) -> str:
        """As HTML, without what is around it; empty: it is not compared."""
        found = WordComparison().draw(before, after)
        if found is None:
            return ""
        text: bytes = self.successResultOf(flattenString(None, found))
        return text.decode().removeprefix('<div class="difference">').removesuffix("</div>")

    def test_words(self) -> None:
        """What was taken out is marked as deleted, what came as inserted, and the rest stands once."""
        self.assertEqual(
            self.drawn("Pay 10 EUR\nto Anna", "Pay 100 EUR\nto Anna, now"),
            "Pay<del> 10</del><ins> 100</ins> EUR\nto Anna<ins>, now</ins>",
        )

    def test_foreign(self) -> None:
        """No character of either text acts or hides."""
        self.assertEqual(self.drawn("<b>", "<i>\u202e"), "&lt;<del>b</del><ins>i</ins>&gt;<ins>\\u202e</ins>")

    def test_alike(self) -> None:
        """A long stretch that is alike is told by its ends and its length."""
        found = self.drawn("x" * 500 + " a", "x" * 500 + " b")
        self.assertEqual(found.count("x"), 300)
        self.assertIn("… 200 unchanged characters …", found)

    def test_not_compared(self) -> None:
        """What is no text, or long, or takes long to compare, is left to the lines."""
        for before, after in (("1", 1), (None, "x"), ("x" * 15000, "y" * 15000), ("a b " * 2400, "b a " * 2400)):
            self.assertEqual(self.drawn(before, after), "")

    def test_work_of_a_page(self) -> None:
        """All texts of a page together get no more than the one sum of steps."""
        comparison, words = WordComparison(), " ".join(map(str, range(1000)))
        done = [comparison.draw(words, f"{words} more") is not None for _ in range(100)]
        self.assertTrue(done[0])
        self.assertFalse(done[-1])
        self.assertTrue(0 <= comparison.steps < MOST_WORD_STEPS)

    @given(st.text(max_size=80), st.text(max_size=80))
    def test_whole(self, before: str, after: str) -> None:
        """Without what was inserted it is the one text, without what was deleted the other."""
        found = self.drawn(before, after)
        for gone, kept in (("ins", before), ("del", after)):
            rest = re.sub(rf"<{gone}>.*?</{gone}>", "", found, flags=re.DOTALL)
            self.assertEqual(html.unescape(re.sub("</?(?:ins|del)>", "", rest)), visible(kept, multiline=True))
