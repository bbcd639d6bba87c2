"""The hostile strings are as many, as different and as hostile as is said of them."""

from __future__ import annotations

import unicodedata

from twisted.trial.unittest import SynchronousTestCase

from .hostile import HIT, MANY, hostile_strings


class CorpusTests(SynchronousTestCase):
    """What there is of them."""

    def test_many(self) -> None:
        """There are as many as said, no two alike, none empty."""
        found = hostile_strings()
        self.assertEqual((len(found), len(set(found))), (MANY, MANY))
        self.assertNotIn("", found)

    def test_the_same(self) -> None:
        """They are made anew the same."""
        before = hostile_strings()
        hostile_strings.cache_clear()
        self.assertEqual(hostile_strings(), before)

    def test_kinds(self) -> None:
        """Markup, scripts, handlers, templates, addresses, and every category of what is not seen are among them."""
        found = hostile_strings()
        for piece in ("<script", "onerror=", "<svg", "{{told}}", "javascript:", "data:", "\x1b[", "</pre>", HIT):
            self.assertGreater(sum(piece in text for text in found), 2, piece)
        categories = {unicodedata.category(character) for text in found for character in text}
        self.assertLessEqual({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me"}, categories)
        self.assertGreater(max(map(len, found)), 10_000)
