"""What was counted of late is counted, and nothing else is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.denials import Counts
from aileron.values import utc

MINUTE = timedelta(minutes=1)


def at(seconds: float) -> datetime:
    """A moment of a day."""
    return utc(1_800_000_000 + seconds)


class CountsTests(SynchronousTestCase):
    """L{Counts}."""

    def test_beyond(self) -> None:
        """More than the most within the time, and each key by itself."""
        counts = Counts(MINUTE)
        self.assertEqual([counts.is_beyond("a", 2, at(second)) for second in (0, 1, 2)], [False, False, True])
        self.assertFalse(counts.is_beyond("b", 2, at(3)))

    def test_long_ago(self) -> None:
        """What was counted a whole minute ago counts no more."""
        counts = Counts(MINUTE)
        self.assertEqual([counts.is_beyond("a", 1, at(second)) for second in (0, 60, 119.9)], [False, False, True])

    def test_forgotten(self) -> None:
        """A key that was not counted for a minute takes no memory; one that was counted again stays."""
        counts = Counts(MINUTE)
        for number in range(100):
            counts.is_beyond(number, 1, at(number / 100))
        counts.is_beyond(0, 1, at(30))
        counts.is_beyond("new", 1, at(61))
        self.assertEqual(len(counts), 2)
        self.assertTrue(counts.is_beyond(0, 1, at(62)))

    def test_most_keys(self) -> None:
        """Beyond so many keys the one that was counted longest ago is forgotten, however late it was."""
        counts = Counts(MINUTE, most_keys=2)
        for key in ("a", "b", "a", "c"):
            counts.is_beyond(key, 9, at(0))
        self.assertEqual(len(counts), 2)
        self.assertTrue(counts.is_beyond("a", 2, at(1)))
        self.assertFalse(counts.is_beyond("b", 1, at(1)))

    def test_clock_set_back(self) -> None:
        """What lies ahead counts as well, and is not forgotten before its time."""
        counts = Counts(MINUTE)
        counts.is_beyond("a", 1, at(3600))
        counts.is_beyond("b", 1, at(0))
        self.assertTrue(counts.is_beyond("a", 1, at(1)))
        self.assertTrue(counts.is_beyond("b", 1, at(2)))
