"""The person's terminal itself, whatever standard input and output are."""

from __future__ import annotations

import os
import select
import shlex
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from aileron.cli.output import note
from aileron.model.errors import InvalidRequest

_NOTED = "aileron.multiplexer"
_TTY = Path("/dev/tty")
_MAX_LINE_BYTES = 4096
_MAX_COMMAND, _MAX_LINES = 16 * 1024, 400
_APART, _BACK = "\x1b[?1049h\x1b[2J\x1b[H", "\x1b[2J\x1b[H\x1b[?1049l"


def note_multiplexer(environ: Mapping[str, str]) -> None:
    """Say once a command, before a question whose answer decides, that in tmux or screen others can read and type."""
    name = "tmux" if environ.get("TMUX") else "screen" if environ.get("STY") else ""
    context = click.get_current_context(silent=True)
    if name and (context is None or not context.meta.setdefault(_NOTED, False)):
        note("In {name}, programs of yours outside a sandbox can read the screen and type here.", name=name)
        note("Where agents run without one, use a terminal outside {name}.", name=name)
        if context is not None:
            context.meta[_NOTED] = True


class Terminal:
    """An open terminal.

    :param descriptor: of the terminal; closed by L{close}.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    @contextmanager
    def open(cls, path: Path = _TTY) -> Iterator[Terminal]:
        """Open the terminal until the end.

        :raises InvalidRequest: this process has none.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise InvalidRequest("Cannot ask for the passphrase: no terminal. Pass it with --passphrase-fd.") from error
        try:
            if not os.isatty(descriptor):
                raise InvalidRequest(f"{path} is not a terminal.")
            yield cls(descriptor)
        finally:
            os.close(descriptor)

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._descriptor

    def say(self, text: str) -> None:
        """Write, to the person alone."""
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def ask(self, prompt: str) -> str:
        """Ask for one line, shown as it is typed; what was typed before the prompt is thrown away.

        :raises InvalidRequest: the line is no UTF-8, too long, or the terminal is closed.
        """
        self.put(prompt)
        return self._line()

    def ask_command(self, prompt: str) -> str:
        """Ask for a command as one types it for a shell: within quotes, and after a backslash, it goes on.

        What was pasted behind it is thrown away, so that no shell gets it.

        :raises InvalidRequest: as of L{ask}.
        """
        try:
            text = self.ask(prompt)
            while _goes_on(text):
                self.say("> ")
                text += f"\n{self._line()}"
            return text
        finally:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Show what follows on a screen of its own, of which nothing is left to scroll back to."""
        self.say(_APART)
        try:
            yield
        finally:
            self.say(_BACK)

    def put(self, prompt: str) -> None:
        """Ask, and do not wait; what was typed before is thrown away.  L{answered} tells the answer."""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
        self.say(prompt)

    def answered(self) -> str | None:
        """Return the line that was typed since L{put}, or L{None}: there is none yet.

        :raises InvalidRequest: as of L{ask}.
        """
        ready, _, _ = select.select([self._descriptor], [], [], 0)
        return self._line() if ready else None

    def ask_secret(self, prompt: str) -> str:
        """Ask for one line, not shown; what was typed before the prompt is thrown away.

        Whatever ends the wait, Ctrl-C too, the terminal is as it was.

        :raises InvalidRequest: the line is no UTF-8, too long, or the terminal is closed.
        """
        with self._silent():
            self.say(prompt)
            try:
                return self._line()
            finally:
                self.say("\n")

    @contextmanager
    def _silent(self) -> Iterator[None]:
        before = termios.tcgetattr(self._descriptor)
        quiet = list(before)
        quiet[3] = (before[3] & ~termios.ECHO & ~termios.ECHONL) | termios.ICANON | termios.ISIG
        try:
            # TCSAFLUSH throws away what was typed, or pasted by another program, before the person was asked.
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, quiet)
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, before)

    def _line(self) -> str:
        data = os.read(self._descriptor, _MAX_LINE_BYTES)
        while data and not data.endswith(b"\n") and len(data) < _MAX_LINE_BYTES:
            more = os.read(self._descriptor, _MAX_LINE_BYTES)
            if not more:
                break
            data += more
        return _decode(data)


def _goes_on(text: str) -> bool:
    """Tell whether a shell would read on: a quote is open, or a backslash is the last character."""
    try:
        shlex.split(text)
    except ValueError:
        return len(text) < _MAX_COMMAND and text.count("\n") < _MAX_LINES
    return False


def _decode(data: bytes) -> str:
    if not data:
        raise InvalidRequest("The terminal was closed.")
    if not data.endswith(b"\n") or len(data) >= _MAX_LINE_BYTES:  # a terminal drops what is behind, and says nothing
        raise InvalidRequest("The line is too long or was cut off.")
    try:
        return data[:-1].decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("The line is not UTF-8.") from None
