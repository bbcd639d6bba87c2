"""The person at the terminal is told what waits, in a way that fits what the agent shows."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonUnreachable
from aileron.features.launch._bell import (
    CLAIM_LOOK_SECONDS,
    LOOK_SECONDS,
    Bell,
    format_waiting,
    is_multiplexed,
    watch_claims,
    watch_waiting,
)


class BellTests(SynchronousTestCase):
    """One line."""

    def test_ways(self) -> None:
        """Into a screen that the agent draws nothing is printed; where lines go by it is a line and a bell.

        A screen gets one sequence, which ends with a bell.  tmux and screen drop it, its end included, and are told by
        a bell of its own.  Without a terminal it is a line, and nothing that only a terminal understands.
        """
        line, sequence = ["aileron: 1 pending approval"], "\x1b]9;1 pending approval\a"
        for terminal, full_screen, multiplexed, told in (
            (True, True, False, ([], [sequence])),
            (True, True, True, ([], [sequence + "\a"])),
            (True, False, False, (line, ["\a"])),
            (True, False, True, (line, ["\a"])),
            (False, True, False, (line, [])),
            (False, False, False, (line, [])),
        ):
            said: list[str] = []
            written: list[str] = []
            bell = Bell(said.append, written.append, terminal, multiplexed)
            bell.ring("1 pending approval", full_screen=full_screen)
            self.assertEqual((said, written), told)

    def test_title(self) -> None:
        """While calls wait the title of a screen that the agent draws says so; then it is as it was before."""
        for terminal, full_screen in ((True, True), (True, False), (False, True)):
            written: list[str] = []
            bell = Bell(written.append, written.append, terminal)
            for waiting, before in ((0, 0), (1, 0), (2, 1), (0, 2)):
                bell.show_title(waiting, before, "codex", full_screen=full_screen)
            titles = [
                "\x1b[22;2t\x1b]2;(!) 1 pending approval: aileron open\a",
                "\x1b]2;(!) 2 pending approvals: aileron open\a",
                "\x1b]2;codex\a\x1b[23;2t",
            ]
            self.assertEqual(written, titles if terminal and full_screen else [])

    def test_multiplexed(self) -> None:
        """Whether it is one of these is in the environment."""
        for environ, multiplexed in (({"TMUX": "/s,1,0"}, True), ({"STY": "1.x"}, True), ({"TMUX": ""}, False)):
            self.assertEqual(is_multiplexed(environ), multiplexed)

    def test_words(self) -> None:
        """What is written raw is ours, whatever the address of the daemon is said to be."""
        self.assertEqual(format_waiting(1, "http://localhost:7"), "1 pending approval: http://localhost:7/approvals")
        self.assertEqual(format_waiting(3, None), "3 pending approvals: aileron open")
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

        def show(now: int, before: int) -> None:
            self.shown.append((now, before))

        self.shown: list[tuple[int, int]] = []
        watching = Deferred.fromCoroutine(watch_waiting(waiting, told.append, clock, show))
        clock.pump([LOOK_SECONDS] * len(numbers))
        watching.cancel()
        self.failureResultOf(watching)
        self.assertEqual((left, clock.getDelayedCalls()), ([], []))
        return told

    def test_more(self) -> None:
        """It is told when more wait than before, not while they wait, and not when they become fewer."""
        self.assertEqual(self.watch([0, 1, 1, 3, 2, 2, 3, 0, 0, 1]), [1, 3, 3, 1])

    def test_shown(self) -> None:
        """How many wait is shown when it changes, again after a while, and given back at the end."""
        self.watch([0, 1, 1, 1, 1, 1, 2])
        self.assertEqual(self.shown, [(1, 0), (1, 1), (2, 1), (0, 2)])
        self.watch([0, 1, 0])
        self.assertEqual(self.shown, [(1, 0), (0, 1), (0, 0)])

    def test_away(self) -> None:
        """A daemon that does not answer ends nothing, and makes nothing new of what was told."""
        away = DaemonUnreachable("It does not answer.")
        self.assertEqual(self.watch([1, away, away, 1, 2]), [1, 2])

    def test_claims(self) -> None:
        """Each claim is told once, also if the daemon did not answer meanwhile."""
        told: list[str] = []
        left: list[list[str] | Exception] = [
            [],
            ["a"],
            DaemonUnreachable("It does not answer."),
            ["a", "b"],
            ["b"],
            ["a"],
        ]
        clock, count = Clock(), len(left)

        async def find() -> Sequence[str]:
            now = left.pop(0)
            if isinstance(now, Exception):
                raise now
            return now

        watching = Deferred.fromCoroutine(watch_claims(find, told.append, clock))
        clock.pump([CLAIM_LOOK_SECONDS] * count)
        watching.cancel()
        self.failureResultOf(watching)
        self.assertEqual((told, left, clock.getDelayedCalls()), (["a", "b"], [], []))
