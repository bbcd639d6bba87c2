"""The memory of all connections is limited."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._budget import MOST_HELD, MOST_HELD_OF_SESSION, HeldBytes


class HeldBytesTests(SynchronousTestCase):
    """L{HeldBytes}."""

    def test_limits(self) -> None:
        """A session holds so much and no more, all sessions together likewise; what is given back is free again."""
        held, sessions = HeldBytes(), MOST_HELD // MOST_HELD_OF_SESSION
        for number in range(sessions):
            name = f"session-{number}"
            self.assertTrue(held.change(name, 0, MOST_HELD_OF_SESSION - 1))
            self.assertTrue(held.change(name, 0, 1))
            self.assertFalse(held.change(name, 1, 2), "the limit of a session")
        self.assertFalse(held.change("another", 0, 1), "the limit of all")
        self.assertTrue(held.change("session-0", 1, 0))
        self.assertTrue(held.change("another", 0, 1))
        self.assertFalse(held.change("session-0", 0, 1))

    def test_less(self) -> None:
        """Holding less is always possible, and leaves nothing behind."""
        held = HeldBytes()
        held.change("one", 0, MOST_HELD_OF_SESSION)
        self.assertTrue(held.change("one", MOST_HELD_OF_SESSION, 0))
        self.assertEqual({}, held._of_sessions)
