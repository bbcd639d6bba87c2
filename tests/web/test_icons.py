"""The icons as PNG, and the manifests of the installed app."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import aileron.features.phone
from aileron.features.phone._entrance import SHOWN
from tests.icons import MADE, STATIC, draw, read_png, write_png

_PHONE = Path(aileron.features.phone.__file__).with_name("static")


class IconTests(SynchronousTestCase):
    def test_drawn(self) -> None:
        """Each PNG is the SVG of today: `python -m tests.icons` draws them."""
        for name, (source, size) in MADE.items():
            rows = read_png((STATIC / name).read_bytes())
            self.assertEqual((len(rows), len(rows[0])), (size, 4 * size), name)
            wanted = (0, size // 3, size // 2, size - 1)
            drawn = draw((STATIC / source).read_text(encoding="utf-8"), size, wanted)
            self.assertEqual([rows[each] for each in wanted], drawn, name)

    def test_written(self) -> None:
        """What is written can be read again; the corners are see-through, and the middle is the brand's."""
        rows = draw((STATIC / "icon.svg").read_text(encoding="utf-8"), 16)
        self.assertEqual(read_png(write_png(rows)), rows)
        self.assertLess(rows[0][3], 255)
        self.assertEqual(rows[8][:4], bytes((0x0B, 0x5C, 0xAD, 255)))


class ManifestTests(SynchronousTestCase):
    def test_alike(self) -> None:
        """The phone's app differs from the desk's in where it begins: at a page that its address has."""
        desk = json.loads((STATIC / "manifest.webmanifest").read_text(encoding="utf-8"))
        phone = json.loads((_PHONE / "phone.webmanifest").read_text(encoding="utf-8"))
        self.assertIn(phone["start_url"], SHOWN)
        self.assertEqual({**desk, "id": "/approvals", "start_url": "/approvals"}, phone)
        self.assertLessEqual({each["url"] for each in phone["shortcuts"]}, set(SHOWN))
        for icon in phone["icons"]:
            self.assertTrue((STATIC / icon["src"].rpartition("/")[2]).is_file(), icon)
