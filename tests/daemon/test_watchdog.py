"""The daemon's reactor measures its turns; long ones are counted, and it is logged where they were."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any, cast

from attrs import define
from twisted.logger import ILogObserver, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.daemon._watchdog import LONGEST_SECONDS, ReactorWatchdog, TurnClock, watchdog_of
from aileron.model.reactor import LongTurns
from tests.functional.operated import TURN


@define
class Clocks:
    """What passes, and how much of it the reactor's thread computed, in seconds."""

    now: float = 1000.0
    computed: float = 5.0

    def compute(self, seconds: float) -> None:
        self.now += seconds
        self.computed += seconds

    def wait(self, seconds: float) -> None:
        """Be kept from it."""
        self.now += seconds


@implementer(ILogObserver)
class Lines:
    """What was logged, in words."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, event: Any) -> None:
        self.lines.append(formatEvent(event))


class TurnClockTests(SynchronousTestCase):
    """What is told of the turns of a reactor."""

    def setUp(self) -> None:
        self.clocks = Clocks()
        self.turns = TurnClock(lambda: self.clocks.now, lambda: self.clocks.computed)
        self.told: list[tuple[float, float]] = []

    def watch(self) -> None:
        """Tell of turns over 250 ms."""
        self.turns.watch(LONGEST_SECONDS, lambda *found: self.told.append(found))

    def assert_told(self, lasted: float, computed: float) -> None:
        """One turn was."""
        ((found, worked),) = self.told
        self.assertAlmostEqual(found, lasted)
        self.assertAlmostEqual(worked, computed)

    def test_short(self) -> None:
        """Turns that take no longer are not, however many there are, and however long nothing happens."""
        self.watch()
        for _ in range(10):
            self.clocks.compute(0.25)
            self.turns.end()
            self.clocks.wait(100)
            self.turns.begin()
        self.assertEqual(self.told, [])

    def test_before(self) -> None:
        """What passed before it was asked to watch is not told, of the turn in which it was asked neither."""
        self.turns.begin()
        self.clocks.compute(10)
        self.watch()
        self.clocks.compute(0.1)
        self.turns.end()
        self.assertEqual(self.told, [])

    def test_in_a_row(self) -> None:
        """Of turns that follow at once, each is told by itself, within a hundredth of a second."""
        self.watch()
        for _ in range(3):
            self.turns.end()
            self.turns.begin()
            self.clocks.compute(0.005)
        self.clocks.compute(0.4)
        self.turns.end()
        ((lasted, computed),) = self.told
        self.assertAlmostEqual(lasted, 0.405)
        self.assertTrue(0.405 <= computed + 1e-9 <= 0.42, computed)


class ReactorWatchdogTests(SynchronousTestCase):
    """What is counted and logged."""

    def setUp(self) -> None:
        self.clocks = Clocks()
        self.turns = TurnClock(lambda: self.clocks.now, lambda: self.clocks.computed)
        self.frame: FrameType | None = None
        self.watchdog = ReactorWatchdog(self.turns, self.frames)
        self.watchdog.watch_this_thread()
        self.heard = Lines()
        globalLogPublisher.addObserver(self.heard)
        self.addCleanup(globalLogPublisher.removeObserver, self.heard)

    def frames(self) -> Mapping[int, FrameType]:
        """This thread is where whoever asks is, or at the frame of the test."""
        return {threading.get_ident(): self.frame or sys._getframe(), 1: cast(FrameType, None)}

    def turn(self) -> None:
        """Another turn begins."""
        self.turns.end()
        self.clocks.wait(1)
        self.turns.begin()

    def test_busy(self) -> None:
        """A turn that computed for too long is busy; the log says where it was, once while it lasts and at its end."""
        self.turn()
        self.clocks.compute(0.3)
        self.watchdog.look()
        self.watchdog.look()
        self.turns.end()
        self.assertEqual(self.watchdog.long_turns.busy, 1)
        self.assertAlmostEqual(self.watchdog.long_turns.longest_seconds, 0.3)
        first, last = self.heard.lines
        self.assertIn("a turn of the reactor has taken 0.300 s so far, at tests/daemon/test_watchdog.py:", first)
        self.assertIn("a turn of the reactor took 0.300 s, of which it computed 0.300 s: busy, at tests/daemon/", last)
        self.assertIn(" ReactorWatchdogTests.test_busy < ", last)

    def test_read_by_others(self) -> None:
        """Tests of whole daemons, which fail at a long turn, know its lines."""
        self.turn()
        self.clocks.compute(0.3)
        self.watchdog.look()
        self.turns.end()
        self.turn()
        self.clocks.wait(0.3)
        self.turns.end()
        found = [turn for line in self.heard.lines if (turn := TURN.search(line))]
        told = [(float(turn["seconds"]), turn["kind"]) for turn in found]
        self.assertEqual(told, [(0.3, None), (0.3, "busy"), (0.3, "blocked")])
        long = self.watchdog.long_turns
        self.assertEqual((long.busy, long.blocked), (1, 1))

    def test_gone_frame(self) -> None:
        """A frame of another thread can be gone while it is read: the turn is counted and logged without its place."""
        self.frame = cast(FrameType, object())
        self.turn()
        self.clocks.compute(0.3)
        self.watchdog.look()
        self.turns.end()
        self.assertEqual(self.watchdog.long_turns.busy, 1)
        self.assertEqual([line.partition(" at ")[2][:7] for line in self.heard.lines], ["unknown"] * 2)

    def test_longest(self) -> None:
        """The longest of them is kept."""
        for seconds in (0.3, 0.7, 0.4):
            self.turn()
            self.clocks.compute(seconds)
        self.turns.end()
        self.assertEqual(self.watchdog.long_turns, LongTurns(3, 0, self.watchdog.long_turns.longest_seconds))
        self.assertAlmostEqual(self.watchdog.long_turns.longest_seconds, 0.7)

    def test_not_seen(self) -> None:
        """Where nobody looked in time it is not known, and where it was in another turn is not told for it."""
        self.turn()
        self.watchdog.look()
        self.turn()
        self.clocks.compute(0.3)
        self.turns.end()
        self.assertIn("busy, at unknown", self.heard.lines[-1])

    def test_when(self) -> None:
        """It looks four times a second, and again just when a turn that it sees would be too long."""
        self.turns.end()
        self.assertEqual(self.watchdog.look(), LONGEST_SECONDS)
        self.turn()
        self.clocks.compute(0.1)
        self.assertAlmostEqual(self.watchdog.look(), LONGEST_SECONDS - 0.1)
        self.clocks.compute(0.15)
        self.assertEqual(self.watchdog.look(), LONGEST_SECONDS)
        self.assertEqual(len(self.heard.lines), 1)

    def test_no_values(self) -> None:
        """Nothing of what the code works with is logged."""
        secret = self.id() + " is a value"
        self.turn()
        self.clocks.compute(0.3)
        self.watchdog.look()
        self.turns.end()
        self.assertNotIn(secret, "".join(self.heard.lines))

    def test_whose(self) -> None:
        """Only a reactor that measures its turns has one."""
        self.assertIsNone(watchdog_of(object()))

        class Measuring:
            turns = self.turns

        self.assertIsInstance(watchdog_of(Measuring()), ReactorWatchdog)
