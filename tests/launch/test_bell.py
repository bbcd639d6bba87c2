"""The person at the terminal is told what waits, in a way that fits what the agent shows."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonUnreachable
from aileron.launch._bell import LOOK_SECONDS, Bell, format_waiting, is_multiplexed, watch_waiting


class BellTests(SynchronousTestCase):
    """One line."""

    def ring(self, *, terminal: bool, full_screen: bool, multiplexed: bool = False) -> tuple[list[str], list[str]]:
        """What is said, and what is written to the terminal."""
        said: list[str] = []
        written: list[str] = []
        Bell(said.append, written.append, terminal, multiplexed).ring("a call waits", full_screen=full_screen)
        return said, written

    def test_full_screen(self) -> None:
        """Into a screen that the agent draws nothing is printed: one sequence, which ends with a bell."""
        self.assertEqual(self.ring(terminal=True, full_screen=True), ([], ["\x1b]9;a call waits\a"]))

    def test_multiplexed(self) -> None:
        """tmux and screen drop that sequence, its end included, and are told by a bell of its own."""
        told = self.ring(terminal=True, full_screen=True, multiplexed=True)
        self.assertEqual(told, ([], ["\x1b]9;a call waits\a\a"]))
        self.assertEqual(self.ring(terminal=True, full_screen=False, multiplexed=True)[1], ["\a"])
        for environ, multiplexed in (({"TMUX": "/s,1,0"}, True), ({"STY": "1.x"}, True), ({"TMUX": ""}, False)):
            self.assertEqual(is_multiplexed(environ), multiplexed)

    def test_lines(self) -> None:
        """Where lines go by it is a line and a bell."""
        self.assertEqual(self.ring(terminal=True, full_screen=False), (["aileron: a call waits"], ["\a"]))

    def test_headless(self) -> None:
        """Without a terminal it is a line, and nothing that only a terminal understands."""
        for full_screen in (True, False):
            self.assertEqual(self.ring(terminal=False, full_screen=full_screen), (["aileron: a call waits"], []))

    def test_words(self) -> None:
        """What is written raw is ours, whatever the address of the daemon is said to be."""
        self.assertEqual(
            format_waiting(1, "http://localhost:7"), "a call waits for your approval: http://localhost:7/approvals"
        )
        self.assertIn("3 calls wait", format_waiting(3, "http://localhost:7"))
        self.assertNotIn("\x1b", format_waiting(1, "http://\x1b]0;x\a"))


class WatchTests(SynchronousTestCase):
    """When it is told."""

    def watch(self, numbers: Sequence[int | Exception]) -> list[int]:
        """What is told where these are how many wait, one after the other."""
        told: list[int] = []
        left, clock = list(numbers), Clock()

        async def waiting() -> int:
            now = left.pop(0)
            if isinstance(now, Exception):
                raise now
            return now

        watching = Deferred.fromCoroutine(watch_waiting(waiting, told.append, clock))
        clock.pump([LOOK_SECONDS] * len(numbers))
        watching.cancel()
        self.failureResultOf(watching)
        self.assertEqual((left, clock.getDelayedCalls()), ([], []))
        return told

    def test_more(self) -> None:
        """It is told when more wait than before, not while they wait, and not when they become fewer."""
        self.assertEqual(self.watch([0, 1, 1, 3, 2, 2, 3, 0, 0, 1]), [1, 3, 3, 1])

    def test_away(self) -> None:
        """A daemon that does not answer ends nothing, and makes nothing new of what was told."""
        away = DaemonUnreachable("It does not answer.")
        self.assertEqual(self.watch([1, away, away, 1, 2]), [1, 2])
