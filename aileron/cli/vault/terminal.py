"""The person's terminal itself, independent of standard input and output."""

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
    """If the terminal runs in tmux or screen, warn that other programs can read the screen and type.

    Call this before the operator is asked for a decision. A command prints the warning only once.
    """
    name = "tmux" if environ.get("TMUX") else "screen" if environ.get("STY") else ""
    context = click.get_current_context(silent=True)
    if name and (context is None or not context.meta.setdefault(_NOTED, False)):
        note("In {name}, programs of yours outside a sandbox can read the screen and type here.", name=name)
        note("Where agents run without one, use a terminal outside {name}.", name=name)
        if context is not None:
            context.meta[_NOTED] = True


class Terminal:
    """An open terminal.

    :param descriptor: the terminal's descriptor, which L{close} closes.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    @contextmanager
    def open(cls, path: Path = _TTY) -> Iterator[Terminal]:
        """Open the terminal, and close it at the end of the block.

        :raises InvalidRequest: if this process has no terminal, or the path is not one.
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
        """Return the terminal's file descriptor."""
        return self._descriptor

    def say(self, text: str) -> None:
        """Print to the person at the terminal, not to standard output."""
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def ask(self, prompt: str) -> str:
        """Ask for one line with echo. Input typed before the prompt is discarded.

        :raises InvalidRequest: if the line is not UTF-8 or too long, or the terminal is closed.
        """
        self.put(prompt)
        return self._line()

    def ask_command(self, prompt: str) -> str:
        """Ask for a shell command, which continues on the next line within quotes and after a backslash.

        Text pasted after it is discarded, so that no shell receives it.

        :raises InvalidRequest: if the line is not UTF-8 or too long, or the terminal is closed.
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
        """Show the following output on the alternate screen, which leaves nothing in the scrollback."""
        self.say(_APART)
        try:
            yield
        finally:
            self.say(_BACK)

    def put(self, prompt: str) -> None:
        """Show a prompt without waiting. Earlier input is discarded. L{answered} returns the answer."""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
        self.say(prompt)

    def answered(self) -> str | None:
        """Return the line typed since L{put}, or None if there is none yet.

        :raises InvalidRequest: if the line is not UTF-8 or too long, or the terminal is closed.
        """
        ready, _, _ = select.select([self._descriptor], [], [], 0)
        return self._line() if ready else None

    def ask_secret(self, prompt: str) -> str:
        """Ask for one line without echo. Input typed before the prompt is discarded.

        The terminal's settings are restored however the wait ends, also by Ctrl-C.

        :raises InvalidRequest: if the line is not UTF-8 or too long, or the terminal is closed.
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
            # TCSAFLUSH discards what was typed, or pasted by another program, before the prompt.
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
    """Return True if a shell would read another line: a quote is open, or the last character is a backslash."""
    try:
        shlex.split(text)
    except ValueError:
        return len(text) < _MAX_COMMAND and text.count("\n") < _MAX_LINES
    return False


def _decode(data: bytes) -> str:
    if not data:
        raise InvalidRequest("The terminal was closed.")
    if not data.endswith(b"\n") or len(data) >= _MAX_LINE_BYTES:  # a terminal silently drops the rest
        raise InvalidRequest("The line is too long or was cut off.")
    try:
        return data[:-1].decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("The line is not UTF-8.") from None
