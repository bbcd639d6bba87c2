"""Tests of what the test command leaves out."""

from __future__ import annotations

import os
from unittest import TestSuite

from twisted.trial.unittest import SynchronousTestCase

from tests.extent import VARIABLE, Turns, seldom
from tests.installed import each_wanted


class SeldomTests(SynchronousTestCase):
    """Tests that are marked."""

    def test_left_out(self) -> None:
        """One that is marked is wanted only where everything is."""

        class Marked(SynchronousTestCase):
            def test_often(self) -> None:
                """Stands for one that is always run."""

            @seldom
            def test_seldom(self) -> None:
                """Stands for one that is left out."""

        suite = TestSuite([TestSuite([Marked("test_often")]), Marked("test_seldom")])
        self.patch(os, "environ", {})
        self.assertEqual([each.id().rpartition(".")[2] for each in each_wanted(suite)], ["test_often"])
        os.environ[VARIABLE] = "all"
        self.assertEqual(len(list(each_wanted(suite))), 2)


class TurnsTests(SynchronousTestCase):
    """Choices that take turns."""

    def test_of(self) -> None:
        """Each comes in its turn, and each is the first of some run; all come at once where everything is wanted."""
        self.patch(os, "environ", {})
        turns = Turns()
        first, second, third = [turns.of("a", "b") for _ in range(3)]
        self.assertEqual(({first, second}, third), ({("a",), ("b",)}, first))
        self.assertEqual({Turns().of("a", "b") for _ in range(100)}, {("a",), ("b",)})
        os.environ[VARIABLE] = "all"
        self.assertEqual(turns.of("a", "b"), ("a", "b"))
