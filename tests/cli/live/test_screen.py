"""The real terminal as a screen: on a pseudo-terminal, without a reactor that runs."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Callable, Sequence
from typing import Any

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.approvals.live_model import BACKSPACE, DOWN, ENTER, ESCAPE, PAGE_DOWN, UP, Row, Size
from aileron.cli.approvals.live_screen import TOGETHER_SECONDS, TerminalScreen


class Reactor(MemoryReactorClock):
    """One that does at once what another thread or a signal asks for."""

    def callFromThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:  # noqa: A002 - Twisted's name
        """At once."""
        callable(*args, **kwargs)


class ScreenCase(SynchronousTestCase):
    """Has a terminal of 80 columns and 24 rows."""

    def setUp(self) -> None:
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
        """What came to the terminal since the last time."""
        found = b""
        while select.select([self.keyboard], [], [], 0)[0]:
            found += os.read(self.keyboard, 65536)
        return found.decode()

    def reading(self) -> Deferred[Sequence[str] | None]:
        """What is typed next."""
        return Deferred.fromCoroutine(self.screen.typed(1.0))

    def arrives(self, typed: bytes) -> None:
        """Have this come from the keyboard."""
        os.write(self.keyboard, typed)
        self.screen.doRead()

    def keys(self, *pieces: bytes) -> Sequence[str] | None:
        """The keys that these pieces are, one after the other."""
        due = self.reading()
        for piece in pieces:
            self.assertNoResult(due)
            self.arrives(piece)
        self.reactor.advance(TOGETHER_SECONDS)
        return self.successResultOf(due)


class TerminalTests(ScreenCase):
    def test_restored(self) -> None:
        """Whatever ends it the terminal is as it was: its modes, its cursor, its screen, and who hears signals."""
        before = termios.tcgetattr(self.inside)
        heard = signal.getsignal(signal.SIGWINCH)

        def fail() -> None:
            with self.screen.taken():
                taken = termios.tcgetattr(self.inside)[3]
                self.assertFalse(taken & (termios.ICANON | termios.ECHO))
                self.assertEqual(self.reactor.getReaders(), [self.screen])
                raise RuntimeError

        self.assertRaises(RuntimeError, fail)
        self.assertEqual(termios.tcgetattr(self.inside), before)
        self.assertEqual((signal.getsignal(signal.SIGWINCH), self.reactor.getReaders()), (heard, []))
        seen = self.seen()
        self.assertTrue(seen.startswith("\x1b[?1049h"))
        self.assertIn("\x1b[?7l", seen)
        self.assertRegex(seen, r"\x1b\[\?7h.*\x1b\[\?25h\x1b\[\?1049l$")

    def test_gone(self) -> None:
        """A terminal that is gone keeps nothing from ending."""
        keyboard, inside = pty.openpty()
        self.addCleanup(os.close, inside)
        screen = TerminalScreen(inside, self.reactor)
        with screen.taken():
            os.close(keyboard)
            screen.doRead()
            due = Deferred.fromCoroutine(screen.typed(1.0))
            self.assertIsNone(self.successResultOf(due))

    def test_aside(self) -> None:
        """Another program gets a terminal that echoes and reads lines, and then it is ours again."""
        with self.screen.taken():
            ours = termios.tcgetattr(self.inside)
            with self.screen.aside():
                local = termios.tcgetattr(self.inside)[3]
                for flag in (termios.ICANON, termios.ECHO, termios.ISIG):
                    self.assertTrue(local & flag)
                self.assertTrue(termios.tcgetattr(self.inside)[0] & termios.ICRNL)
                self.assertEqual(self.reactor.getReaders(), [])
            self.assertEqual((termios.tcgetattr(self.inside), self.reactor.getReaders()), (ours, [self.screen]))

    def test_draw(self) -> None:
        """Rows stand where they belong, in bold or reversed; only those that are otherwise than before are written."""
        terminal = pyte.Screen(80, 24)
        stream = pyte.Stream(terminal)
        with self.screen.taken():
            self.screen.draw([Row("one", bold=True), Row("two", selected=True), Row("three")])
            stream.feed(self.seen())
            self.assertEqual([line.rstrip() for line in terminal.display[:4]], ["one", "two", "three", ""])
            self.assertTrue(terminal.buffer[0][0].bold and terminal.buffer[1][0].reverse)
            self.assertFalse(terminal.buffer[2][0].bold or terminal.buffer[2][0].reverse)
            self.screen.draw([Row("one", bold=True), Row("2"), Row("three")])
            seen = self.seen()
            stream.feed(seen)
            self.assertEqual([line.rstrip() for line in terminal.display[:4]], ["one", "2", "three", ""])
            self.assertNotIn("one", seen)

    def test_escapes(self) -> None:
        """An escape that should ever reach the screen is not passed on."""
        self.screen.draw([Row("a\x1b[2Jb")])
        self.assertIn("a?[2Jb", self.seen())

    def test_resized(self) -> None:
        """Another size ends the wait, and all is drawn anew; a terminal that goes away ends it for good."""
        with self.screen.taken():
            self.screen.draw([Row("one")])
            self.seen()
            due = self.reading()
            self.sized(40, 10)
            signal.raise_signal(signal.SIGWINCH)
            self.assertEqual(self.successResultOf(due), [])
            self.assertEqual(self.screen.size(), Size(40, 10))
            self.screen.draw([Row("one")])
            self.assertRegex(self.seen(), r"\x1b\[2J.*one")
            due = self.reading()
            signal.raise_signal(signal.SIGHUP)
            self.assertIsNone(self.successResultOf(due))
            self.assertIsNone(self.successResultOf(self.reading()))

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


class KeysTests(ScreenCase):
    def setUp(self) -> None:
        super().setUp()
        taken = self.screen.taken()
        taken.__enter__()
        self.addCleanup(taken.__exit__, None, None, None)

    def test_named(self) -> None:
        """Arrows in both their forms, paging, Enter and erasing have names; letters are themselves."""
        keys = self.keys(b"j\x1b[A\x1bOB\x1b[6~\r\n\x7f y")
        self.assertEqual(keys, ["j", UP, DOWN, PAGE_DOWN, ENTER, ENTER, BACKSPACE, " ", "y"])

    def test_escape(self) -> None:
        """Escape alone is a key, once nothing has come with it."""
        self.assertEqual(self.keys(b"\x1b"), [ESCAPE])
        self.assertEqual(self.keys(b"j"), ["j"])

    def test_unknown(self) -> None:
        """A sequence that nobody knows is no key, and none of its letters is one either."""
        self.assertEqual(self.keys(b"y\x1b[15~\x1b[1;5C\x1b[<0;3;4M\x01"), ["y"])
        self.assertEqual(self.keys(b"j\x1b[99;99uy"), ["j"])
        self.assertEqual(self.keys(b"\x1by"), [])

    def test_in_pieces(self) -> None:
        """A character or a sequence that comes in pieces is one key; what follows soon counts as come at once."""
        self.assertEqual(self.keys("é".encode()[:1], "é".encode()[1:]), ["é"])
        self.assertEqual(self.keys(b"\x1b", b"[", b"A"), [UP])
        self.assertEqual(self.keys(b"y", b"y"), ["y", "y"])

    def test_woken(self) -> None:
        """What ends the wait otherwise, such as news of the daemon, does not part what comes at once."""
        due = self.reading()
        self.arrives(b"y")
        self.screen.wake()
        self.assertNoResult(due)
        self.arrives(b"y")
        self.reactor.advance(TOGETHER_SECONDS)
        self.assertEqual(self.successResultOf(due), ["y", "y"])
        due = self.reading()
        self.screen.wake()
        self.assertEqual(self.successResultOf(due), [])

    def test_late(self) -> None:
        """Where nothing is typed in time nothing is told."""
        due = self.reading()
        self.reactor.advance(0.9)
        self.assertNoResult(due)
        self.reactor.advance(0.2)
        self.assertEqual((self.successResultOf(due), self.reactor.getDelayedCalls()), ([], []))

    def test_forgotten(self) -> None:
        """What was typed while something else went on is thrown away, wherever it has got to."""
        self.arrives(b"y\x1b")
        os.write(self.keyboard, b"y")
        self.screen.forget()
        self.reactor.advance(TOGETHER_SECONDS)
        self.assertEqual(self.keys(b"n"), ["n"])

    def test_ctrl_c(self) -> None:
        """Ctrl-C interrupts the command, whatever it is at; Ctrl-Z, which would leave the terminal taken, is no key."""
        heard: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.arrives(b"\x1a\x1c")
        self.assertEqual((self.keys(), heard), ([], []))
        self.arrives(b"\x03")
        self.assertEqual(heard, [signal.SIGINT])

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.binary(min_size=1, max_size=12).filter(lambda typed: b"\x03" not in typed), max_size=4))
    def test_anything(self, pieces: list[bytes]) -> None:
        """Whatever is typed, no key holds a control character."""
        keys = self.keys(*pieces) if pieces else []
        self.assertTrue(all(key.isprintable() and key for key in keys or ()))
