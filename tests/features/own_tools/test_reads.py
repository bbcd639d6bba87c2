"""The reads of one session leave room for those of others."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.features.own_tools._reads import MOST_READS_AT_ONCE, SessionReads
from aileron.model.sessions import Session


class SlowReads:
    """Reads that last until the test ends them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Deferred[Any]]] = []

    async def read(self, session: Session, action_name: str, inputs: object) -> Any:
        """Wait."""
        self.sent.append((session.id, Deferred()))
        return await self.sent[-1][1]


class SessionReadsTests(SynchronousTestCase):
    """L{SessionReads}."""

    def setUp(self) -> None:
        self.slow = SlowReads()
        slow: Any = self.slow
        self.reads = SessionReads(slow)

    def read(self, session_id: str) -> Deferred[Any]:
        """Begin a read."""
        session = Session(session_id, "claude", "/home/me", utc(0), utc(0))
        return Deferred.fromCoroutine(self.reads.read(session, "action", {}))

    def test_turns(self) -> None:
        """Of many reads of a session, few are sent at once; the next one follows, and others are not held up."""
        many = [self.read("one") for _ in range(MOST_READS_AT_ONCE + 2)]
        self.assertEqual(["one"] * MOST_READS_AT_ONCE, [name for name, _ in self.slow.sent])
        self.read("two")
        self.assertEqual("two", self.slow.sent[-1][0])
        many[-2].cancel()
        self.failureResultOf(many[-2], CancelledError)
        self.slow.sent[0][1].callback("done")
        self.assertEqual("done", self.successResultOf(many[0]))
        self.assertEqual(MOST_READS_AT_ONCE + 2, len(self.slow.sent))
        self.reads.session_ended("one")
        self.assertEqual({"two"}, set(self.reads._turns))
