"""QR codes in a terminal."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli import qr
from aileron.features.phone.commands import draw_pairing_code

_ADDRESS = "https://laptop.tail1234.ts.net/pair#" + "A" * 22


class QrTests(SynchronousTestCase):
    def test_sizes(self) -> None:
        """What fits into 80 columns is drawn within them, and what is too long for any code is not."""
        self.assertIsNotNone(qr.draw_qr("x" * 458, 81))
        self.assertIsNone(qr.draw_qr("x" * 700, 80))
        self.assertIsNone(qr.draw_qr("x" * 5000, 10_000))

    def test_pairing(self) -> None:
        """The address with which a phone is paired is drawn; if that cannot be done, a note says so."""
        drawn = draw_pairing_code(_ADDRESS)
        self.assertEqual(drawn, (qr.draw_qr(_ADDRESS, 80) or "").rstrip("\n"))
        self.assertIn("wider than these 80 columns", draw_pairing_code("x" * 700))
        self.patch(qr, "find_package", lambda _: None)
        self.assertIn("extra `phone`", draw_pairing_code(_ADDRESS))
