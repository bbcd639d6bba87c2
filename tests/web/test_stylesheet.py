"""The stylesheet's scales: what is spaced or written on a page takes a step of them, and no size of its own.

Its colours can be read in each scheme, and the samples of the documentation show each of its parts.
"""

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
SAMPLES = Path(__file__).parents[2] / "doc" / "design"
SCHEMES = re.compile(r"(?:@media ([^{]*) \{\s*)?:root \{([^}]*)\}")
COLOURS = re.compile(r"--([a-z-]+): (#[0-9a-f]{6});")
READ = {
    "paper": ("ink", "quiet", "link", "red", "amber", "good", "string", "literal"),
    "raised": ("ink", "quiet", "link"),
    "box": ("ink", "quiet", "link", "string", "literal"),
    "chosen": ("ink", "quiet", "link"),
    "red-box": ("ink", "red"),
    "red-mark": ("ink",),
    "amber-box": ("ink", "amber", "link"),
    "amber-mark": ("ink",),
    "grey-box": ("ink", "grey"),
    "good-box": ("ink", "good"),
    "blue-box": ("ink", "link"),
    "ins": ("ink",),
    "del": ("ink",),
    "yes": ("#ffffff",),
    "no": ("#ffffff",),
}
"""What is written on which background."""

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

    def test_contrasts(self) -> None:
        """Each text can be read on its backgrounds: 4.5 to 1, and 7 to 1 for those who ask for more contrast."""
        schemes = _read_schemes(SHEET.read_text("utf-8"))
        self.assertEqual(len(schemes), 4)
        for name, values in schemes.items():
            least = 7 if "contrast" in name else 4.5
            for under, texts in READ.items():
                for text in texts:
                    found = _contrast(values.get(text, text), values[under])
                    self.assertGreaterEqual(found, least, f"{text} on --{under} in {name}")
            for outline in ("line", "focus"):
                self.assertGreaterEqual(_contrast(values[outline], values["paper"]), 3, f"--{outline} in {name}")

    def test_samples(self) -> None:
        """Each part that the sheet's first comment names is in a sample."""
        told = SHEET.read_text("utf-8").partition("*/")[0]
        named = set(re.findall(r"(?<!\w)\.([a-z][a-z-]*)", told))
        self.assertGreater(len(named), 25)
        texts = [path.read_text("utf-8") for path in SAMPLES.glob("*.html")]
        shown = {each for text in texts for found in re.findall(r'class="([^"]*)"', text) for each in found.split()}
        self.assertEqual(named - shown - {"open"}, set())


def _read_schemes(text: str) -> dict[str, dict[str, str]]:
    """The colours of each scheme by name, with those that it takes from the schemes before it."""
    found = {media or "light": dict(COLOURS.findall(body)) for media, body in SCHEMES.findall(text)}
    own = {name: values for name, values in found.items() if values}
    light, dark = own["light"], own["(prefers-color-scheme: dark)"]
    under = {name: light if "dark" not in name else {**light, **dark} for name in own}
    return {name: {**under[name], **values} for name, values in own.items()}


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
