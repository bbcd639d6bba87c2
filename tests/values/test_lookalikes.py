"""Letters that look like others are told, and texts in any language are left alone."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import cautions, is_plain, visible

_PROSE = (
    "Привет, это обычный текст: а, о, с и рос",
    "Доброго дня, це звичайний текст",
    "Γειά σου Κόσμε, το ένα και ο άλλος",
    "日本語のテキスト、Webサイトとメール",
    "今天发布了新版本 v2",
    "한국어 텍스트입니다",
    "नमस्ते दुनिया १२",
    "ภาษาไทย ๑๒",
    "Tiếng Việt đẹp, café naïve façade, Straße, 5 µm",
)
_DISGUISED = {
    "#g\u0435neral": "general",
    "p\u0430ypal": "paypal",
    "\u0440\u0430\u0443\u0440\u0430l": "paypal",
    "\u0441\u043e\u0441\u043e": "coco",
    "send it to \u0440\u0430\u0443\u0440 now": "payp",
    "\u039fnly": "Only",
    "\uff46\uff55\uff4c\uff4c": "full",
    "\U0001d5ef\U0001d5fc\U0001d5f9\U0001d5f1": "bold",
    "\u217c\u2170nk": "link",
    "\u0131f": "if",
}


class LookalikeTests(SynchronousTestCase):
    """Words that would be read as others."""

    def test_told(self) -> None:
        """Each is told, with what it looks like and its code points, and is not plain."""
        for text, read in _DISGUISED.items():
            (caution,) = cautions(text)
            self.assertIn(f"looks like “{read}”", caution)
            foreign = next(each for each in text if not each.isascii())
            self.assertIn(f"U+{ord(foreign):04X} {unicodedata.name(foreign)}", caution)
            self.assertFalse(is_plain(text), text)

    def test_prose(self) -> None:
        """A text in the language that its letters are of is none, whatever single words of it look like."""
        for text in _PROSE:
            self.assertEqual(list(cautions(text)), [], text)

    def test_right_to_left(self) -> None:
        """Text from right to left is told once, and is not plain."""
        for text in ("שלום עולם", "send 123 to مرحبا", "\u0661\u0662"):
            *_, turned = cautions(text)
            self.assertIn("from right to left", turned)
            self.assertFalse(is_plain(text))

    def test_plain(self) -> None:
        """ASCII, accents and other scripts whose letters look like no ASCII are plain."""
        for text in ("", "#general \x00", "café naïve", "今天", "한국어", "ไทย"):
            self.assertTrue(is_plain(text), text)

    def test_many(self) -> None:
        """Of many words some are told, and how many more there are."""
        told = list(cautions(" ".join(f"\u0430dmin{number}" for number in range(100))))
        self.assertEqual((len(told), told[-1]), (7, "94 more words look like others."))

    @settings(deadline=None, max_examples=200)
    @given(st.text())
    def test_anything(self, text: str) -> None:
        """Whatever comes, it is judged; what is told of is never plain, and its words are shown in a visible form."""
        for caution in cautions(text):
            self.assertFalse(is_plain(text))
            self.assertEqual(visible(caution), caution)
