"""Tests of what the test command leaves out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from unittest import TestSuite

from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import just
from twisted.trial.reporter import Reporter
from twisted.trial.unittest import SynchronousTestCase

from tests import extent
from tests.extent import SEED, SEED_VARIABLE, VARIABLE, Turns, how_to_repeat, place_among, seldom
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

    def test_in_turn(self) -> None:
        """Of a room whose tests take turns, each seed leaves out some, and every test is wanted with some seed."""
        names = [f"test_{number}" for number in range(20)]
        room = type("Room", (SynchronousTestCase,), {each: lambda _: None for each in names})
        room.__module__ = "tests.attacks.test_process"
        suite, seen = TestSuite(map(room, names)), set[str]()
        self.patch(os, "environ", {})
        for seed in range(20):
            self.patch(extent, "SEED", seed)
            wanted = {each.id() for each in each_wanted(suite)}
            self.assertTrue(0 < len(wanted) < len(names))
            seen |= wanted
        self.assertEqual(len(seen), len(names))
        os.environ[VARIABLE] = "all"
        self.assertEqual(len(list(each_wanted(suite))), len(names))


class PlaceTests(SynchronousTestCase):
    """Parts that are another in each run."""

    def test_repeated(self) -> None:
        """Another process with the same seed tries the same, whatever its hashes are; with another seed it does not."""
        told = re.search(rf"{SEED_VARIABLE}=([0-9]+)", how_to_repeat())
        assert told is not None
        script = "from tests.extent import place_among; print([place_among(n, 9**9) for n in 'ab'])"

        def ask(seed: str) -> str:
            environment = {**os.environ, SEED_VARIABLE: seed, "PYTHONHASHSEED": seed}
            return subprocess.check_output([sys.executable, "-c", script], env=environment, text=True)

        self.assertEqual(ask(told[1]), f"{[place_among(name, 9**9) for name in 'ab']}\n")
        self.assertNotEqual(ask(told[1]), ask(f"{told[1]}1"))


class ExampleTests(SynchronousTestCase):
    """Properties that fail."""

    def test_shown(self) -> None:
        """Trial shows the example on which one failed, a state machine's steps, and how to try the same parts again."""

        class Machine(RuleBasedStateMachine):
            @rule(number=just("canary 2"))
            def meet(self, number: str) -> None:
                """Fail."""
                raise ValueError

        class Failing(SynchronousTestCase):
            @given(just("canary 1"))
            def test_value(self, value: str) -> None:
                """Fail."""
                self.fail()

            def test_machine(self) -> None:
                """Fail too."""
                run_state_machine_as_test(Machine)

        shown = StringIO()
        reporter = Reporter(shown)
        for name in ("test_value", "test_machine"):
            Failing(name).run(reporter)
        reporter.done()
        self.assertIn("value='canary 1'", shown.getvalue())
        self.assertIn("state.meet(number='canary 2')", shown.getvalue())
        self.assertEqual(shown.getvalue().count(f"{SEED_VARIABLE}={SEED}\n"), 2)


class TurnsTests(SynchronousTestCase):
    """Choices that take turns."""

    def test_of(self) -> None:
        """Each comes in its turn, and each is the first of some run; all come at once where everything is wanted."""
        self.patch(os, "environ", {})
        turns = Turns("name")
        first, second, third = [turns.of("a", "b") for _ in range(3)]
        self.assertEqual(({first, second}, third), ({("a",), ("b",)}, first))
        again = Turns("name")
        self.assertEqual([again.of("a", "b") for _ in range(2)], [first, second])
        self.assertEqual({Turns(str(number)).of("a", "b") for number in range(100)}, {("a",), ("b",)})
        os.environ[VARIABLE] = "all"
        self.assertEqual(turns.of("a", "b"), ("a", "b"))
