"""What the operator must read before trusting a file."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.model.trust import Candidate, TrustItem, TrustKind, TrustState
from aileron.review import find_trust_difference


def item(state: TrustState, text: str | None, before: str | None = None) -> TrustItem:
    """An action as it lies there."""
    candidate = None if text is None else Candidate(TrustKind.ACTION, "a", "sha256:a", "a.md", text)
    return TrustItem(state, TrustKind.ACTION, "a", candidate, before=before)


class DifferenceTests(SynchronousTestCase):
    """Nothing that would be trusted is left unread."""

    def test_read(self) -> None:
        """Of what is new, or no text is known of before, all is read; of what changed the changed lines, to the letter.

        A separator other than the line feed is a change like any other, and so is a line feed at the end.
        """
        head = "--- trusted\n+++ now\n@@ -1,{0} +1,{0} @@\n"
        for state, text, before, difference in (
            (TrustState.NEW, "one\ntwo\n", None, "one\ntwo\n"),
            (TrustState.CHANGED, "one", None, "one"),
            (TrustState.CHANGED, "one\n2\n", "one\ntwo\n", head.format(3) + " one\n-two\n+2\n "),
            (
                TrustState.CHANGED,
                "one\u2028two",
                "one two",
                "--- trusted\n+++ now\n@@ -1 +1 @@\n-one two\n+one\u2028two",
            ),
            (TrustState.CHANGED, "one", "one\n", "--- trusted\n+++ now\n@@ -1,2 +1 @@\n one\n-"),
            (TrustState.TRUSTED, "one", None, ""),
            (TrustState.GONE, None, "one", ""),
        ):
            self.assertEqual(find_trust_difference(item(state, text, before)), difference)

    def test_costly(self) -> None:
        """A file that is written so that comparing takes long is read whole; one that is merely long is not."""
        before = "\n".join(f"u{number}\nx" for number in range(2500))
        costly = "x\n" * 198
        self.assertEqual(find_trust_difference(item(TrustState.CHANGED, costly, before)), costly)
        same = "same\n" * 3000
        self.assertEqual(find_trust_difference(item(TrustState.CHANGED, same + "x", same)), same + "x")
        long = "".join(f"line {number}\n\n" for number in range(600))
        self.assertIn("+more", find_trust_difference(item(TrustState.CHANGED, long + "more", long)).split("\n"))
