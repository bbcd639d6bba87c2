"""Texts and addresses are compared by what a reader sees and a server is told."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.comparison import normalize_address, normalize_addresses, normalize_text, strip_invisible
from tests.growth import seconds


class TextTests(SynchronousTestCase):
    """Texts without what cannot be seen."""

    def test_invisible(self) -> None:
        """Formats, controls, selectors, tags and joiners make no difference; a blank of any kind is one blank."""
        for each in "\u200b\u200d\u00ad\ufe0f\u2060\u202e\ufeff\u034f\u180b\x00\x7f\U000e0061\U000e0100\u2065":
            self.assertEqual(normalize_text(f"ab{each}c"), "abc", hex(ord(each)))
        for each in "\u00a0\u2003\u3000\u2800\u3164\uffa0\n\t":
            self.assertEqual(normalize_text(f"ab{each}c"), "ab c", hex(ord(each)))

    def test_seen(self) -> None:
        """Letters, signs, emoji and what no version of Unicode here knows stay."""
        for text in ("abc", "a-b!", "\U0001f44d", "\U0001fae8", "\ue000", "\U0003fffd"):
            self.assertEqual(normalize_text(text), text)

    @given(st.text())
    def test_twice(self, text: str) -> None:
        """Normalized twice it is the same."""
        once = strip_invisible(text)
        self.assertEqual(strip_invisible(once), once)


class AddressTests(SynchronousTestCase):
    """Mail addresses."""

    def test_name(self) -> None:
        """The name before an address does not count; a text that holds no address, or more, is one."""
        for text in ("b@x.org", "Bob <b@x.org>", '"B, C" <B@X.org> ', "<b@x.org>"):
            self.assertEqual(normalize_address(text), "b@x.org", text)
        for text in ("bob", "see <here>", "a <b@x.org> and <c@x.org>"):
            self.assertEqual(normalize_address(text), text)

    def test_spellings(self) -> None:
        """Nothing that a server leaves out of an address makes another one: however long a name, comments, groups."""
        for text in (
            f"{'B' * 500} <b@x.org>",
            "Bob <1> <b@x.org>",
            "b@x.org (1)",
            "(one) b(two)@x.org",
            "b @ x.org",
            "b@x.org.",
            "mailto:b@x.org",
            "team: b@x.org",
            "Bob <mailto:b@x.org>",
        ):
            self.assertEqual(normalize_address(text), "b@x.org", text)
        self.assertEqual([*normalize_addresses("one: b@x.org;")], ["b@x.org"])
        self.assertEqual([*normalize_addresses('"1, b@x.org')], ['"1', "b@x.org"])

    def test_lists(self) -> None:
        """Commas and semicolons separate addresses, but not within a quoted name."""
        text = '"Last, First \\" x" <a@x.org>, b@x.org;C <c@x.org>,, '
        self.assertEqual([*normalize_addresses(text)], ["a@x.org", "b@x.org", "c@x.org"])

    def test_bounded(self) -> None:
        """Long texts take linear time."""
        for text in (
            '"\\' * 500_000,
            "<" * 1_000_000,
            ",;" * 500_000,
            "\u200b" * 1_000_000,
            "<a@" * 300_000,
            "(<@:" * 300_000,
        ):
            self.assertLess(seconds(partial(list, normalize_addresses(text))), 2)
