"""What tests of programs on terminals look at: the screen of a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.functional.process import Command, Running


class ScreenTests(SynchronousTestCase):
    def running(self, *pieces: bytes) -> Running:
        """A process that has sent this to its terminal."""
        command = Command(arguments=("true",), environment={}, directory=Path(), terminal=True)
        running = Running(cast("Any", Clock()), command)
        for piece in pieces:
            running.childDataReceived(1, piece)
        return running

    def test_words_drawn_over(self) -> None:
        """Words stand there whole of which a program sent only what stood there not yet."""
        running = self.running(b"ab cde\r\n\x1b[Hxy\x1b[1C")
        self.assertEqual(running.screen, "xy cde")
        running.childDataReceived(1, b"\x1b[1C\x1b[39me\x1b[3;3Hz")
        self.assertEqual(running.screen, "xy cee\n\n  z")

    def test_what_shows_nothing(self) -> None:
        """Colours, modes, titles, questions to the terminal and bells leave it as it is."""
        for silent in (
            b"\x1b[?25l\x1b[?2026h\x1b[1;31m\x1b[38;2;1;2;3m\x1b[?4m",
            b"\x1b]0;title\x07\x1b]9;x\x1b\\\x1b]11;?\x07\x07",
            b"\x1b(B\x1b7\x1b[<u\x1b[>1u\x1b[=1u\x1b[?u\x1b[c\x1b[>0q",
            b"\x1bP+q544e\x1b\\\x1b_Gi=1;AAAA\x1b\\",
        ):
            self.assertEqual(self.running(b"a", silent, b"b").screen, "ab", silent)

    def test_broken_off(self) -> None:
        """What breaks off within an order or a letter is shown when its rest is there."""
        sent = "a\x1b[2Cb\x1b]0;t\x07\x1b[<u\x1bP+q\x1b\\❯".encode()
        running = self.running()
        for number in range(len(sent)):
            running.childDataReceived(1, sent[number : number + 1])
            self.assertIn(running.screen, ("", "a", "a  b", "a  b❯"))
        self.assertEqual(running.screen, "a  b❯")
