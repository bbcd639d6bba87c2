"""Two versions of a text line by line: what differs is never folded, and nothing is missing."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.template import flattenString

from aileron.base.text import visible
from aileron.review import compare_versions
from aileron.web.hunks import draw_hunks

LINES = st.lists(st.sampled_from(("a", "b", "c", "<b>", "\u202e", "")), max_size=40)
FOLD = re.compile(r'<details id="x-\d+"><summary>Show (\d+) unchanged lines</summary>(.*?)</details>', re.DOTALL)


class HunkTests(SynchronousTestCase):
    """One text over another."""

    def drawn(self, before: str, after: str) -> str:
        """As HTML; empty: they are not compared."""
        compared = compare_versions(before, after)
        if not compared:
            return ""
        text: bytes = self.successResultOf(flattenString(None, draw_hunks(compared, "x")))
        return text.decode()

    def test_folded(self) -> None:
        """Three unchanged lines stand at each side of a change, and the others unfold by a press."""
        before = [f"line {number}" for number in range(50)]
        after = [*before[:40], "new", *before[41:]]
        found = self.drawn("\n".join(before), "\n".join(after))
        self.assertEqual([int(number) for number, _ in FOLD.findall(found)], [37, 6])
        self.assertIn("</details> line 37\n line 38\n line 39\n<del>-line 40\n</del><ins>+new\n</ins> line 41", found)

    def test_short(self) -> None:
        """Texts of a few lines, and those that take too long, are not compared by lines."""
        self.assertEqual(self.drawn("a\nb", "a\nc"), "")
        self.assertEqual(self.drawn("a\nb\n" * 5000, "b\na\n" * 5000), "")

    @given(LINES, LINES)
    def test_whole(self, before: list[str], after: list[str]) -> None:
        """Both versions are there in full, nothing acts, and a fold holds lines that both have and no others."""
        found = self.drawn("\n".join(before), "\n".join(after))
        if not found:
            return
        for _, folded in FOLD.findall(found):
            self.assertTrue(all(line.startswith(" ") for line in folded.removesuffix("\n").split("\n")))
        text = re.sub("<summary>.*?</summary>", "", found)
        lines = html.unescape(re.sub("</?(?:div|del|ins|details)[^>]*>", "", text)).removesuffix("\n").split("\n")
        for gone, version in (("+", before), ("-", after)):
            kept = [line[1:] for line in lines if not line.startswith(gone)]
            self.assertEqual(kept, [visible(line) for line in version or [""]])
