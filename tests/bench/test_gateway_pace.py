"""Tests of what the release check makes of the gateway's processor time beside the yardstick's."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from bench.gateway import _pace
from bench.gateway._pace import LIMIT, RECORDED, Slower, check, ratio

AILERON = Path("/installed/bin/aileron")
VERSION = (3, 99)


class RatioTests(SynchronousTestCase):
    """What comes of the rounds."""

    def test_median(self) -> None:
        """Each figure is compared within its round, and one disturbed round does not show."""
        self.assertEqual(ratio([(2.0, 1.0), (30.0, 10.0), (90.0, 1.0)]), 3.0)


class CheckTests(SynchronousTestCase):
    """Whether a release is held up."""

    def setUp(self) -> None:
        """Record a ratio of 2.0, and have found what is put into C{found}."""
        self.found: list[float] = []
        self.patch(_pace, "RECORDED", {VERSION: 2.0})
        self.patch(_pace, "measure", lambda aileron: self.found.pop(0))

    def test_as_before(self) -> None:
        """What costs as much as was recorded, or a little more, passes."""
        self.found = [2.0 * LIMIT - 0.01]
        self.assertIn("2.19 x the yardstick, 2.00 recorded, at most 2.20", check(AILERON, VERSION))

    def test_lost_a_tenth(self) -> None:
        """What costs more than a tenth more fails, if it does so twice."""
        self.found = [2.3, 2.21]
        self.assertRaises(Slower, check, AILERON, VERSION)
        self.assertEqual(self.found, [])

    def test_disturbed(self) -> None:
        """What cost more only once was disturbed by something else, and passes."""
        self.found = [2.5, 2.05]
        self.assertIn("2.05 x", check(AILERON, VERSION))

    def test_other_python(self) -> None:
        """For a Python for which nothing was recorded, nothing is measured, and the line says so."""
        self.assertIn("not recorded for Python 3.98", check(AILERON, (3, 98)))

    def test_recorded(self) -> None:
        """A ratio is recorded for the Python that releases are built with."""
        self.assertGreater(RECORDED[3, 11], 0.0)
