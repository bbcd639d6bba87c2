"""Sessions that are remembered."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.store._sessions import SessionCache
from aileron.testing import example_session


class SessionCacheTests(SynchronousTestCase):
    def test_remembered(self) -> None:
        """What was put is there until it ends."""
        recent, session = SessionCache(), example_session()
        recent.put(b"a", session, recent.ticket())
        recent.put(b"b", example_session("other"), recent.ticket())
        self.assertEqual(recent.get(b"a"), session)
        recent.drop(session.id)
        self.assertIsNone(recent.get(b"a"))
        self.assertIsNotNone(recent.get(b"b"))

    def test_read_before_an_end(self) -> None:
        """A session that was read before some session ended is not remembered: it may be that one, as it was."""
        recent, session = SessionCache(), example_session()
        ticket = recent.ticket()
        recent.drop(session.id)
        recent.put(b"a", session, ticket)
        self.assertIsNone(recent.get(b"a"))

    def test_bounded(self) -> None:
        """Those that were not used for longest are forgotten first."""
        recent = SessionCache(2)
        for name in (b"a", b"b"):
            recent.put(name, example_session(), recent.ticket())
        recent.get(b"a")
        recent.put(b"c", example_session(), recent.ticket())
        self.assertEqual([recent.get(name) is None for name in (b"a", b"b", b"c")], [False, True, False])
