"""Tests of what the test command leaves out."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.extent import VARIABLE, Turns


class TurnsTests(SynchronousTestCase):
    """Choices that take turns."""

    def test_of(self) -> None:
        """Each comes in its turn; all come at once where everything is wanted."""
        self.patch(os, "environ", {})
        turns = Turns()
        self.assertEqual([turns.of("a", "b") for _ in range(3)], [("a",), ("b",), ("a",)])
        os.environ[VARIABLE] = "all"
        self.assertEqual(turns.of("a", "b"), ("a", "b"))
