"""Foreign text cannot act on a terminal or hide in a page."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.text import duration, visible
from tests.extent import examples

_WILD = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\x1b\x00\x07\x08\r\n\t\x7f\x9b\u200b\u200d\u202e\u2066\u2028\ufeff\u00ad\u3164\ufe0f\U000e0041"
        ),
    )
)


_SILENT = {0x115F, 0x1160, 0x2D7F, 0x3164, 0xFFA0, 0x1107F, 0x13441, 0x13442, 0x16FE4}


class VisibleTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=examples(400))
    @given(_WILD, st.booleans())
    def test_nothing_hidden_is_left(self, text: str, multiline: bool) -> None:
        """Whatever comes in, no control, format, surrogate, private or odd blank character comes out."""
        left = visible(text, multiline).replace("\n", "") if multiline else visible(text, multiline)
        bad = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        self.assertEqual([c for c in left if unicodedata.category(c) in bad], [])
        self.assertEqual([c for c in left if unicodedata.category(c) == "Zs" and c != " "], [])

    @settings(deadline=None, max_examples=examples(200))
    @given(_WILD)
    def test_twice_is_once(self, text: str) -> None:
        """What was made visible stays as it is."""
        self.assertEqual(visible(visible(text)), visible(text))

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text(st.characters(categories=("L", "N", "P")).filter(lambda c: unicodedata.category(c) != "Cn")))
    def test_plain_text_stays(self, text: str) -> None:
        """Letters, figures and punctuation of any script are shown as they are, but for the few that print nothing."""
        printing = "".join(c for c in text if ord(c) not in _SILENT)
        self.assertEqual(visible(printing), printing)

    def test_blank(self) -> None:
        """No character that its name calls a filler, blank, joiner or selector is shown as it is."""
        named = ("FILLER", "NULL NOTEHEAD", "PATTERN BLANK", "FULL BLANK", "HALF BLANK", " JOINER", "SELECTOR-")
        printed = ("GAP FILLER", "LINE FILLER", "PUNCTUATION SPACE FILLER")  # drawn where a line has room left
        names = {chr(code): unicodedata.name(chr(code), "") for code in range(0x110000)}
        odd = {each for each, name in names.items() if any(word in name for word in named)}
        blank = [each for each in odd if not any(word in names[each] for word in printed)]
        self.assertGreater(len(blank), 260)
        self.assertEqual([each for each in blank if visible(each) == each], [])

    def test_how_it_looks(self) -> None:
        """Controls are pictures, what is beyond them is its number."""
        self.assertEqual(visible("a\x1b[31mb\x7f\x00"), "a␛[31mb␡␀")
        self.assertEqual(visible("\u202efdp\u200b\U000e0041\xa0"), "\\u202efdp\\u200b\\U000e0041\\u00a0")
        self.assertEqual(visible("grüße 🙂 #eng"), "grüße 🙂 #eng")

    def test_overlays(self) -> None:
        """A mark that is drawn over a letter, or around it, is shown in its place: it hides what it is drawn over."""
        for code in (*range(0x0334, 0x0339), *range(0x20D0, 0x20F1), 0x0489):
            self.assertEqual(visible(f"a{chr(code)}"), f"a\\u{code:04x}")
        self.assertEqual(visible("e\u0301\u0323"), "e\u0301\u0323")

    def test_lines(self) -> None:
        """Line feeds stay only where the caller puts a margin before each line; a carriage return never does."""
        self.assertEqual(visible("a\nb\r\tc"), "a↵b␍␉c")
        self.assertEqual(visible("a\nb\r\n", multiline=True), "a\nb␍\n")


class DurationTests(SynchronousTestCase):
    def test_duration(self) -> None:
        """A duration has two units at most, and none that is nought."""
        for seconds, told in (
            (0, "0 s"),
            (0.5, "0.5 s"),
            (45, "45 s"),
            (59.7, "1 min"),
            (900, "15 min"),
            (905, "15 min 5 s"),
            (7500, "2 h 5 min"),
            (3605, "1 h"),
            (90_000, "1 d 1 h"),
            (86_400 * 30, "30 d"),
        ):
            self.assertEqual(duration(seconds), told)
