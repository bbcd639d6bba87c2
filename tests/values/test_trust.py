"""What the operator must read before trusting a file."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.values import Candidate, TrustItem, TrustKind, TrustState


def item(state: TrustState, text: str | None, before: str | None = None) -> TrustItem:
    """An action as it lies there."""
    candidate = None if text is None else Candidate(TrustKind.ACTION, "a", "sha256:a", "a.md", text)
    return TrustItem(state, TrustKind.ACTION, "a", candidate, before=before)


class DifferenceTests(SynchronousTestCase):
    """Nothing that would be trusted is left unread."""

    def test_new(self) -> None:
        """Of what is new, all is read."""
        self.assertEqual(item(TrustState.NEW, "one\ntwo\n").difference, "one\ntwo\n")

    def test_changed(self) -> None:
        """Of what changed, the lines that did."""
        found = item(TrustState.CHANGED, "one\n2\n", "one\ntwo\n").difference
        self.assertEqual(found, "--- trusted\n+++ now\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n ")

    def test_separators(self) -> None:
        """A separator other than the line feed is a change like any other, and stays in what is shown."""
        found = item(TrustState.CHANGED, "one\u2028two", "one two").difference
        self.assertEqual(found.split("\n")[3:], ["-one two", "+one\u2028two"])

    def test_last_line_feed(self) -> None:
        """So is a line feed at the end."""
        self.assertTrue(item(TrustState.CHANGED, "one", "one\n").difference)

    def test_unknown_before(self) -> None:
        """Where what was trusted is not known any more, or comparing takes long, all is read."""
        self.assertEqual(item(TrustState.CHANGED, "one").difference, "one")
        long = "same\n" * 3000
        self.assertEqual(item(TrustState.CHANGED, long + "x", long).difference, long + "x")

    def test_costly(self) -> None:
        """A file that is written so that comparing takes seconds is read whole; one that is merely long is not."""
        before = "\n".join(f"u{number}\nx" for number in range(2500))
        costly = "x\n" * 198
        self.assertEqual(item(TrustState.CHANGED, costly, before).difference, costly)
        long = "".join(f"line {number}\n\n" for number in range(600))
        self.assertIn("+more", item(TrustState.CHANGED, long + "more", long).difference.split("\n"))

    def test_nothing_to_trust(self) -> None:
        """What is trusted, or gone, asks for nothing."""
        self.assertEqual(item(TrustState.TRUSTED, "one").difference, "")
        self.assertEqual(item(TrustState.GONE, None, "one").difference, "")
