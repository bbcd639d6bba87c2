"""The stylesheet's scales: what is spaced or written on a page takes a step of them, and no size of its own."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

SHEET = Path(__file__).parents[2] / "aileron" / "web" / "static" / "style.css"
DECLARED = re.compile(r"(?<=[{;\s])([a-z0-9-]+)\s*:([^;{}]*)[;}]")
SPACED = re.compile(r"(margin|padding)(-\w+)*|(row-|column-)?gap")
OWN_SPACE = re.compile(r"(?<![\w.-])\d*\.?\d+rem\b")
OWN_SIZE = re.compile(r"(?<![\w./-])\d*\.?\d+rem\b")
COLOUR = re.compile(r"#[0-9a-f]{3,6}\b")
ROOM = 2.5
"""From so many rem on it is room kept for a bar, not a space between parts."""


class StylesheetTests(SynchronousTestCase):
    """What is declared in it."""

    def setUp(self) -> None:
        text = re.sub(r"/\*.*?\*/", "", SHEET.read_text("utf-8"), flags=re.DOTALL)
        self.declared = [(found[1], found[2].strip()) for found in DECLARED.finditer(text)]

    def test_spaces(self) -> None:
        """Margins, paddings and gaps are steps of the scale."""
        spaced = [(name, value) for name, value in self.declared if SPACED.fullmatch(name)]
        self.assertGreater(len(spaced), 100)
        own = [(name, value) for name, value in spaced for size in OWN_SPACE.findall(value) if float(size[:-3]) < ROOM]
        self.assertEqual(own, [])

    def test_sizes(self) -> None:
        """Text has one of the six sizes."""
        sizes = [(name, value) for name, value in self.declared if name in ("font", "font-size")]
        self.assertGreater(len(sizes), 30)
        self.assertEqual([each for each in sizes if OWN_SIZE.search(each[1])], [])
        self.assertEqual(len({name for name, _ in self.declared if name.startswith("--text-")}), 6)

    def test_colours(self) -> None:
        """Colours are named once for each scheme; only white is written out, on the colours that are dark in both."""
        own = [(name, value) for name, value in self.declared if not name.startswith("--") and COLOUR.search(value)]
        self.assertEqual({value for _, value in own}, {"#fff"})
