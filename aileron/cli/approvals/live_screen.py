"""The person's terminal as a whole screen: rows are put, keys are read, and on any way out it is as it was."""

from __future__ import annotations

import signal
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import DEFAULT_ATTRS
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from aileron.cli.approvals.live_model import BACKSPACE, DOWN, ENTER, ESCAPE, HOME, PAGE_DOWN, PAGE_UP, UP, Row, Size

TOGETHER_SECONDS = 0.03
"""So long after the first key, what comes has come at once with it: a sequence, or a paste."""

_SMALLEST = Size(20, 4)
_NAMES: Mapping[str, str] = {
    Keys.Up: UP,
    Keys.Down: DOWN,
    Keys.PageUp: PAGE_UP,
    Keys.PageDown: PAGE_DOWN,
    Keys.Home: HOME,
    Keys.ControlM: ENTER,
    Keys.ControlJ: ENTER,
    Keys.Escape: ESCAPE,
    Keys.ControlH: BACKSPACE,
}


@implementer(IReadDescriptor)
class TerminalScreen:
    """The terminal at a descriptor.

    :param reactor: provides time and waits for the terminal.
    """

    def __init__(self, descriptor: int, reactor: Any) -> None:
        self._reactor = reactor
        # Who opened the descriptor closes it; to close a stream would write once more to a terminal that is gone.
        typed, shown = (open(descriptor, mode, encoding="utf-8", closefd=False) for mode in ("r", "w"))  # noqa: SIM115
        self._input, self._output = Vt100Input(typed), Vt100_Output.from_pty(shown)
        self._pressed: list[KeyPress] = []
        self._shown: list[Row] = []
        self._due: Deferred[None] | None = None
        self._settling: Any = None
        self._gone = False

    @contextmanager
    def taken(self) -> Iterator[TerminalScreen]:
        """Have the whole terminal until the end, whatever ends it."""
        with ExitStack() as stack:
            for number, hear in {signal.SIGWINCH: self._redraw, signal.SIGHUP: self.connectionLost}.items():
                before = signal.signal(number, lambda *_, hear=hear: self._reactor.callFromThread(hear, None))
                stack.callback(signal.signal, number, before)
            stack.enter_context(self._input.raw_mode())
            stack.callback(self._leave)
            self._enter()
            yield self

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the terminal to another program until the end."""
        with self._input.cooked_mode():
            self._leave()
            try:
                yield
            finally:
                self._enter()

    def size(self) -> Size:
        """As it is now."""
        found = self._output.get_size()
        return Size(max(found.columns, _SMALLEST.width), max(found.rows, _SMALLEST.height))

    def draw(self, rows: Sequence[Row]) -> None:
        """Show these, and nothing else; only what is otherwise than before is written."""
        if len(rows) != len(self._shown):
            self._output.erase_screen()
            self._shown = []
        for number, row in enumerate(rows):
            if self._shown[number : number + 1] != [row]:
                self._output.cursor_goto(number + 1, 1)
                attributes = DEFAULT_ATTRS._replace(bold=row.bold, reverse=row.selected)
                self._output.set_attributes(attributes, ColorDepth.DEPTH_1_BIT)
                self._output.write(row.text)
                self._output.reset_attributes()
                self._output.erase_end_of_line()
        self._shown = list(rows)
        self._output.flush()

    def ring(self) -> None:
        """Sound the bell."""
        self._output.bell()

    def forget(self) -> None:
        """Throw away what was typed and not yet read."""
        termios.tcflush(self._input.fileno(), termios.TCIFLUSH)
        self._input.flush_keys()
        self._pressed = []

    async def typed(self, seconds: float) -> Sequence[str] | None:
        """The keys that are typed first; empty: none in so many seconds; L{None}: the terminal is gone."""
        late = self._reactor.callLater(TOGETHER_SECONDS if self._pressed else seconds, self.wake)
        self._due = Deferred()
        try:
            if not self._gone:
                await self._due
        finally:
            self._due = None
            if late.active():
                late.cancel()
        pressed, self._pressed = [*self._pressed, *self._input.flush_keys()], []
        return None if self._gone else _names(pressed)

    def wake(self) -> None:
        """End the wait for what is typed, unless more of it may come at once."""
        if self._due is not None and self._settling is None and not self._due.called:
            self._due.callback(None)

    def fileno(self) -> int:
        """The terminal's."""
        return self._input.fileno()

    def doRead(self) -> None:
        """Note what was typed; Ctrl-C ends the command, whatever it is at."""
        pressed = self._input.read_keys()
        self._pressed += pressed
        if any(each.key == Keys.ControlC for each in pressed):
            signal.raise_signal(signal.SIGINT)
        if self._input.closed:
            self.connectionLost(None)
        if self._settling is None:
            self._settling = self._reactor.callLater(TOGETHER_SECONDS, self._settle)

    def connectionLost(self, reason: object) -> None:
        """The terminal is gone."""
        self._gone = True
        self.wake()

    def logPrefix(self) -> str:
        """For the reactor's log."""
        return "terminal"

    def _settle(self) -> None:
        self._settling = None
        self.wake()

    def _redraw(self, _reason: object) -> None:
        self._shown = []
        self.wake()

    def _enter(self) -> None:
        self.forget()
        self._shown = []
        self._output.enter_alternate_screen()
        self._output.hide_cursor()
        self._output.disable_autowrap()
        self._output.flush()
        self._reactor.addReader(self)

    def _leave(self) -> None:
        self._reactor.removeReader(self)
        with suppress(OSError, termios.error):  # the terminal itself may be gone
            self._output.reset_attributes()
            self._output.enable_autowrap()
            self._output.show_cursor()
            self._output.quit_alternate_screen()
            self._output.flush()
            self.forget()


def _names(pressed: Sequence[KeyPress]) -> Sequence[str]:
    """Return the names of pressed keys, printable characters as themselves; others are left out.

    An Escape that arrives together with other keys starts an unknown escape sequence: it and the keys after it are
    left out.
    """
    names = [
        _NAMES.get(each.key, each.key if len(each.key) == 1 and each.key.isprintable() else "") for each in pressed
    ]
    if ESCAPE in names[:-1]:
        names = names[: names.index(ESCAPE)]
    return [name for name in names if name]
