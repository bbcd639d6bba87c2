"""The person's terminal as a whole screen: rows are put, keys are read, and on any way out it is as it was."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from .drawing import Row
from .model import Size

_MOST_BYTES = 4096
_USUAL, _SMALLEST = Size(80, 24), Size(20, 4)
_INTO = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # another screen, no cursor, no line that runs into the next
_BACK = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"


class Screen(Protocol):
    """What the view is drawn on, and what is typed there."""

    def size(self) -> Size:
        """As it is now."""

    def draw(self, rows: Sequence[Row]) -> None:
        """Show these, and nothing else."""

    def ring(self) -> None:
        """Sound the bell."""

    def forget(self) -> None:
        """Throw away what was typed and not yet read."""

    def wake(self) -> None:
        """End the wait for what is typed."""

    async def typed(self, seconds: float) -> bytes | None:
        """What is typed first; empty: nothing in so many seconds, or another size; L{None}: the terminal is gone."""

    def aside(self) -> Any:
        """A context in which another program has the terminal."""


@implementer(IReadDescriptor)
class TerminalScreen:
    """See L{Screen}.

    :param descriptor: of the terminal.
    :param reactor: provides time and waits for the terminal.
    """

    def __init__(self, descriptor: int, reactor: Any) -> None:
        self._descriptor = descriptor
        self._reactor = reactor
        self._due: Deferred[bytes | None] | None = None
        self._shown: list[str] = []

    @contextmanager
    def taken(self) -> Iterator[TerminalScreen]:
        """Have the whole terminal until the end, whatever ends it."""
        before = termios.tcgetattr(self._descriptor)
        with _signals({signal.SIGWINCH: self._woken, signal.SIGHUP: self._gone}):
            try:
                self._take(before)
                yield self
            finally:
                self._give_back(before)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """See L{Screen.aside}."""
        ours = termios.tcgetattr(self._descriptor)
        cooked = list(ours)
        cooked[3] |= termios.ICANON | termios.ECHO
        self._give_back(cooked)
        try:
            yield
        finally:
            self._take(ours)

    def size(self) -> Size:
        """See L{Screen.size}; one that the terminal does not tell counts as the usual one."""
        found = os.get_terminal_size(self._descriptor)
        if not found.columns or not found.lines:
            return _USUAL
        return Size(max(found.columns, _SMALLEST.width), max(found.lines, _SMALLEST.height))

    def draw(self, rows: Sequence[Row]) -> None:
        """See L{Screen.draw}; only what is otherwise than before is written."""
        lines = [f"\x1b[{row.look.value}m{row.text}\x1b[0m" for row in rows]
        same = dict(enumerate(self._shown))
        parts = [f"\x1b[{number + 1};1H{line}\x1b[K" for number, line in enumerate(lines) if same.get(number) != line]
        if len(lines) < len(self._shown):
            parts.append(f"\x1b[{len(lines) + 1};1H\x1b[J")
        self._shown = lines
        self._write("".join(parts))

    def ring(self) -> None:
        """See L{Screen.ring}."""
        self._write("\a")

    def forget(self) -> None:
        """See L{Screen.forget}."""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def wake(self) -> None:
        """See L{Screen.wake}."""
        self._tell(b"")

    async def typed(self, seconds: float) -> bytes | None:
        """See L{Screen.typed}."""
        due: Deferred[bytes | None] = Deferred()
        self._due = due
        late = self._reactor.callLater(seconds, self._tell, b"")
        self._reactor.addReader(self)
        try:
            return await due
        finally:
            self._due = None
            self._reactor.removeReader(self)
            if late.active():
                late.cancel()

    def fileno(self) -> int:
        """The terminal's."""
        return self._descriptor

    def doRead(self) -> None:
        """Something was typed."""
        try:
            data = os.read(self._descriptor, _MOST_BYTES)
        except OSError:
            data = b""
        self._tell(data or None)

    def connectionLost(self, reason: object) -> None:
        """The terminal is gone."""
        self._tell(None)

    def logPrefix(self) -> str:
        """For the reactor's log."""
        return "terminal"

    def _tell(self, data: bytes | None) -> None:
        if self._due is not None and not self._due.called:
            self._due.callback(data)

    def _woken(self, _number: int, _frame: FrameType | None) -> None:
        self._shown = []
        self._reactor.callFromThread(self._tell, b"")

    def _gone(self, _number: int, _frame: FrameType | None) -> None:
        self._reactor.callFromThread(self._tell, None)

    def _take(self, before: list[Any]) -> None:
        keys = list(before)
        keys[3] &= ~(termios.ICANON | termios.ECHO)
        controls = list(before[6])
        controls[termios.VMIN], controls[termios.VTIME] = 1, 0
        # Ctrl-Z and Ctrl-\ would leave the terminal as it is now.
        controls[termios.VSUSP] = controls[termios.VQUIT] = bytes((os.fpathconf(self._descriptor, "PC_VDISABLE"),))
        keys[6] = controls
        termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, keys)
        self._shown = []
        self._write(_INTO + "\x1b[2J")

    def _give_back(self, before: list[Any]) -> None:
        try:
            self._write(_BACK)
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, before)
        except (OSError, termios.error):
            return  # the terminal itself is gone

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._descriptor, data) :]


@contextmanager
def _signals(wanted: dict[signal.Signals, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    """Hear of these signals until the end."""
    before = {number: signal.signal(number, heard) for number, heard in wanted.items()}
    try:
        yield
    finally:
        for number, heard in before.items():
            signal.signal(number, heard)
