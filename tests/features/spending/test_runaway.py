"""Agents that run away are stopped, and go on when they behave."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.spending._runaway import MOST_SESSIONS, RunawayDetector
from aileron.features.spending.values import Runaway
from aileron.model.errors import LimitExceeded


class RunawayTests(SynchronousTestCase):
    """The detector."""

    def made(self, **bounds: int) -> RunawayDetector:
        """One with these bounds."""
        self.clock = Clock()
        self.clock.advance(1000)
        self.told: list[tuple[str, str]] = []
        return RunawayDetector(Runaway(**bounds), self.clock.seconds, lambda *each: self.told.append(each))

    def refused(self, detector: RunawayDetector, session: str = "s1", digest: bytes | None = b"a") -> str:
        """Assert that it is stopped; the sentence."""
        return str(self.assertRaises(LimitExceeded, detector.check, session, digest))

    def test_off(self) -> None:
        """Without bounds nothing is stopped."""
        detector = self.made()
        for _ in range(10_000):
            detector.check("s1", b"a")

    def test_same(self) -> None:
        """A request is let through so often in a row; another one in between, or of another session, begins anew."""
        detector = self.made(same_requests=3)
        for _ in range(3):
            detector.check("s1", b"a")
        for _ in range(5):
            self.assertIn("same request 3 times", self.refused(detector))
        self.assertEqual([each[0] for each in self.told], ["s1"])
        detector.check("s2", b"a")
        detector.check("s1", b"b")
        for _ in range(3):
            detector.check("s1", b"a")
        self.refused(detector)
        self.assertEqual(len(self.told), 2)

    def test_rate(self) -> None:
        """So many requests pass within a minute; those that were stopped do not count."""
        detector = self.made(per_minute=3)
        for _ in range(3):
            detector.check("s1", None)
            self.clock.advance(10)
        for _ in range(5):
            self.assertIn("3 requests within a minute", self.refused(detector))
        self.clock.advance(30)
        detector.check("s1", None)
        self.refused(detector)
        self.assertEqual(len(self.told), 2)
        detector.check("s2", None)

    def test_clock_set_back(self) -> None:
        """If the clock is set back, nobody waits for the time that it was set back by."""
        detector = self.made(per_minute=1)
        detector.check("s1", None)
        self.clock.rightNow -= 500
        detector.check("s1", None)
        self.refused(detector)

    def test_sessions(self) -> None:
        """Only so many sessions are remembered."""
        detector = self.made(per_minute=1)
        for number in range(MOST_SESSIONS + 10):
            detector.check(f"s{number}", None)
        self.assertEqual(len(detector._sessions), MOST_SESSIONS)
