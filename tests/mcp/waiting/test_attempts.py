"""A call that goes on through the daemon's restart."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonUnreachable
from aileron.mcp.waiting.running import Attempts

CUT_OFF = DaemonUnreachable("cut off", sent=True)
SOMEBODY_ELSE = DaemonUnreachable("somebody else", misdirected=True)


class AttemptsTests(SynchronousTestCase):
    """How long it is held on to."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.attempts = Attempts(self.clock, 60)

    def answer(self, *lost: DaemonUnreachable) -> Deferred[str]:
        """What comes of attempts that fail so, one after the other, and then succeed."""
        left: Iterator[DaemonUnreachable] = iter(lost)

        async def ask(_left: float) -> str:
            for error in left:
                raise error
            return "done"

        return Deferred.fromCoroutine(self.attempts.answer(ask))

    def test_somebody_else(self) -> None:
        """Whoever proves not to be the daemon is not asked again."""
        error = self.failureResultOf(self.answer(SOMEBODY_ELSE), DaemonUnreachable).value
        self.assertEqual((error.sent, error.misdirected), (False, True))

    def test_somebody_else_meanwhile(self) -> None:
        """But a call that may have arrived is held on to, whoever answers while the daemon is away."""
        answering = self.answer(CUT_OFF, SOMEBODY_ELSE, SOMEBODY_ELSE)
        self.assertNoResult(answering)
        self.clock.pump([1] * 5)
        self.assertEqual(self.successResultOf(answering), "done")

    def test_somebody_else_for_good(self) -> None:
        """It is told in the end that it may have arrived."""
        answering = self.answer(CUT_OFF, *[SOMEBODY_ELSE] * 100)
        self.clock.pump([1] * 70)
        error = self.failureResultOf(answering, DaemonUnreachable).value
        self.assertEqual((error.sent, error.misdirected), (True, True))
