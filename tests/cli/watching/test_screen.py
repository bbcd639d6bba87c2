"""The real terminal as a screen: on a pseudo-terminal, without a reactor that runs."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.watching.drawing import Look, Row
from aileron.cli.watching.model import Size
from aileron.cli.watching.screen import TerminalScreen


class Reactor(MemoryReactorClock):
    """One that does at once what another thread or a signal asks for."""

    def callFromThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:  # noqa: A002 - Twisted's name
        """At once."""
        callable(*args, **kwargs)


class ScreenTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Have a terminal of 80 columns and 24 rows."""
        self.keyboard, self.inside = pty.openpty()
        self.addCleanup(os.close, self.keyboard)
        self.addCleanup(os.close, self.inside)
        self.sized(80, 24)
        self.reactor = Reactor()
        self.screen = TerminalScreen(self.inside, self.reactor)

    def sized(self, width: int, height: int) -> None:
        """Make it so large."""
        fcntl.ioctl(self.inside, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def seen(self) -> str:
        """What came to the terminal."""
        found = b""
        while select.select([self.keyboard], [], [], 0)[0]:
            found += os.read(self.keyboard, 65536)
        return found.decode()

    def reading(self) -> Deferred[bytes | None]:
        """What is typed next."""
        return Deferred.fromCoroutine(self.screen.typed(1.0))

    def test_restored(self) -> None:
        """Whatever ends it the terminal is as it was: its modes, its cursor, its screen, and who hears signals."""
        before = termios.tcgetattr(self.inside)
        heard = signal.getsignal(signal.SIGWINCH)

        def fail() -> None:
            with self.screen.taken():
                taken = termios.tcgetattr(self.inside)[3]
                self.assertFalse(taken & (termios.ICANON | termios.ECHO))
                self.assertTrue(taken & termios.ISIG, "Ctrl-C must still end it")
                raise RuntimeError

        self.assertRaises(RuntimeError, fail)
        self.assertEqual(termios.tcgetattr(self.inside), before)
        self.assertEqual(signal.getsignal(signal.SIGWINCH), heard)
        seen = self.seen()
        self.assertTrue(seen.startswith("\x1b[?1049h"))
        self.assertTrue(seen.endswith("\x1b[?7h\x1b[?25h\x1b[?1049l"))

    def test_aside(self) -> None:
        """Another program gets a terminal that echoes and reads lines, and then it is ours again."""
        with self.screen.taken():
            ours = termios.tcgetattr(self.inside)
            with self.screen.aside():
                self.assertTrue(termios.tcgetattr(self.inside)[3] & termios.ICANON & termios.ICANON)
                self.assertTrue(termios.tcgetattr(self.inside)[3] & termios.ECHO)
            self.assertEqual(termios.tcgetattr(self.inside), ours)

    def test_draw(self) -> None:
        """Only rows that are otherwise than before are written."""
        self.screen.draw([Row("one", Look.BOLD), Row("two")])
        self.assertIn("\x1b[1;1H\x1b[1mone\x1b[0m", self.seen())
        self.screen.draw([Row("one", Look.BOLD), Row("2")])
        seen = self.seen()
        self.assertNotIn("one", seen)
        self.assertIn("\x1b[2;1H\x1b[0m2", seen)

    def test_typed(self) -> None:
        """Nothing is told until something is typed; then that is, and the terminal is no longer waited for."""
        due = self.reading()
        self.assertNoResult(due)
        self.assertEqual(self.reactor.getReaders(), [self.screen])
        with self.screen.taken():
            os.write(self.keyboard, b"j")
            self.screen.doRead()
        self.assertEqual(self.successResultOf(due), b"j")
        self.assertEqual((self.reactor.getReaders(), self.reactor.getDelayedCalls()), ([], []))

    def test_late(self) -> None:
        """Where nothing is typed in time nothing is told."""
        due = self.reading()
        self.reactor.advance(0.9)
        self.assertNoResult(due)
        self.reactor.advance(0.2)
        self.assertEqual(self.successResultOf(due), b"")

    def test_signals(self) -> None:
        """Another size ends the wait, and all is drawn anew; a terminal that goes away ends it for good."""
        with self.screen.taken():
            self.screen.draw([Row("one")])
            self.seen()
            due = self.reading()
            self.sized(40, 10)
            signal.raise_signal(signal.SIGWINCH)
            self.assertEqual(self.successResultOf(due), b"")
            self.assertEqual(self.screen.size(), Size(40, 10))
            self.screen.draw([Row("one")])
            self.assertIn("one", self.seen())
            due = self.reading()
            signal.raise_signal(signal.SIGHUP)
            self.assertIsNone(self.successResultOf(due))

    def test_absurd(self) -> None:
        """A size that is not told counts as the usual one; a tiny one as one that can be drawn on."""
        self.sized(0, 0)
        self.assertEqual(self.screen.size(), Size(80, 24))
        self.sized(3, 1)
        self.assertEqual(self.screen.size(), Size(20, 4))

    def test_ring(self) -> None:
        """The bell is one character."""
        self.screen.ring()
        self.assertEqual(self.seen(), "\a")
