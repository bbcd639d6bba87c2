"""Prepares and removes what the demo needs: a private home, the installed commands that run in it, and the chat."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from attrs import field, frozen

from aileron.base.text import visible
from aileron.home.lock import running_pid
from aileron.home.paths import Home, find_home
from aileron.model.errors import InternalError, NotFound

_INDENT = "   "
_LEAST = 20
_END_SECONDS, _STOP_SECONDS = 20.0, 40.0
_CHAT_SECONDS = 5.0


@frozen
class Stage:
    """The demo's private home, the commands that run in it, and the address of the chat.

    :ivar environ: the environment of the commands: the user's without C{AILERON_*}, with this home.
    :ivar passphrase: the generated passphrase of this home's vault. Commands read it from a descriptor.
    :ivar key: the key of the chat.
    """

    home: Home
    environ: Mapping[str, str] = field(repr=False)
    passphrase: str = field(repr=False)
    key: str = field(repr=False)
    chat_url: str

    async def as_operator(self, *arguments: str, **descriptors: str) -> str:
        """Run a command that needs the passphrase and return its standard output.

        If this is cancelled, the command is stopped first.

        :param descriptors: texts that the command reads from inherited descriptors, by option: C{secret_fd="…"}.
        :raises InternalError: if the command failed.
        :raises NotFound: if the command C{aileron} is not installed.
        """
        child = await self.begin(*arguments, at_terminal=False, passphrase_fd=self.passphrase, **descriptors)
        speaking = asyncio.ensure_future(child.communicate())
        try:
            out, err = await asyncio.shield(speaking)
        except asyncio.CancelledError:
            # The command may finish: a daemon that it starts can be found and stopped only then.
            await asyncio.wait({speaking}, timeout=_END_SECONDS)
            await end_child(child)
            await asyncio.wait({speaking})
            raise
        if child.returncode:
            said = err.decode("utf-8", "replace").strip().splitlines()
            raise InternalError(f"`aileron {shlex.join(arguments)}` failed: {said[0] if said else child.returncode}")
        return out.decode("utf-8", "replace")

    async def begin(self, *arguments: str, at_terminal: bool, **descriptors: str) -> asyncio.subprocess.Process:
        """Start a command.

        :param at_terminal: True if the command may prompt in this terminal; Ctrl-C reaches it then.
        :param descriptors: texts that the command reads, as in L{as_operator}.
        :raises NotFound: if the command C{aileron} is not installed.
        """
        width = str(max(0, columns() - len(_INDENT)))
        pipes = {f"--{option.replace('_', '-')}": _pipe_with(text) for option, text in descriptors.items()}
        try:
            options = [word for option, number in pipes.items() for word in (option, str(number))]
            return await asyncio.create_subprocess_exec(
                *(script("aileron"), "--width", width, *arguments, *options),
                env=dict(self.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=tuple(pipes.values()),
                start_new_session=not at_terminal,
            )
        finally:
            for number in pipes.values():
                os.close(number)


async def end_child(child: asyncio.subprocess.Process) -> None:
    """Stop a command if it still runs."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.terminate()
        await child.wait()


@contextmanager
def stage(environ: Mapping[str, str]) -> Iterator[Stage]:
    """Create a private home, start the chat, and yield both. When the block ends, delete or stop everything.

    :raises NotFound: if C{aileron-mcp} is not installed.
    """
    script("aileron-mcp")
    root = Path(tempfile.mkdtemp(prefix="aileron-demo-"))
    theirs = {name: text for name, text in environ.items() if not name.startswith("AILERON_")}
    ours = {**theirs, "AILERON_HOME": str(root / "home")}
    try:
        key = "demo-" + secrets.token_urlsafe(18)
        with _chat(key) as url:
            yield Stage(find_home(ours), ours, secrets.token_urlsafe(24), key, url)
    finally:
        _end_daemon(find_home(ours), ours)
        shutil.rmtree(root)


def script(name: str) -> str:
    """Return the path of an installed command of Aileron, beside this interpreter or on PATH.

    :raises NotFound: if the command is not installed.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    found = shutil.which(name, path=path)
    if found is None:
        raise NotFound(f"{name} is not installed. Reinstall the aileron package.")
    return found


@contextmanager
def _chat(key: str) -> Iterator[str]:
    """Start the chat in a process of its own, and yield its URL. When the block ends, stop the chat.

    :raises ValueError: if the chat did not start.
    :raises InternalError: if its input and output cannot be reached.
    """
    child = subprocess.Popen(
        (sys.executable, "-E", "-P", "-m", "aileron.features.demo._chat"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with child:
        if child.stdin is None or child.stdout is None:
            raise InternalError("The demo's chat has no pipes.")
        try:
            child.stdin.write(f"{key}\n")
            child.stdin.flush()
            yield f"http://127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                child.wait(_CHAT_SECONDS)
            child.kill()


def _end_daemon(home: Home, environ: Mapping[str, str]) -> None:
    """Stop the private daemon by its command, or by a signal if that fails.

    :raises NotFound: if the command C{aileron} is not installed.
    """
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            (script("aileron"), "daemon", "stop"),
            env=dict(environ),
            capture_output=True,
            check=False,
            timeout=_STOP_SECONDS,
        )
    pid = running_pid(home)
    if pid:
        os.kill(pid, signal.SIGKILL)


def _pipe_with(text: str) -> int:
    """Return the reading end of a pipe that holds C{text} and then ends."""
    reading, writing = os.pipe()
    with open(writing, "wb") as pipe:
        pipe.write(text.encode())  # far less than a pipe holds
    return reading


def columns() -> int:
    """Return the width of the terminal; 0 if there is none, or its width is not known."""
    return shutil.get_terminal_size((0, 0)).columns if sys.stdout.isatty() else 0


def _print(text: str, indent: str) -> None:
    """Print a line, wrapped between words at the width of the terminal."""
    width = columns()
    fits = not width or len(indent + text) <= width
    filled = textwrap.wrap(text, max(width - len(indent), _LEAST), break_long_words=False, break_on_hyphens=False)
    for line in (text,) if fits else filled:
        click.echo(indent + line)


def print_heading(number: int, title: str) -> None:
    """Print the heading of one part of the demo."""
    click.echo()
    click.secho(f"{number}  {title}", bold=True)


def print_text(text: str) -> None:
    """Print a line of the demo's own text."""
    _print(text, _INDENT)


def print_command(arguments: Sequence[str], meaning: str) -> None:
    """Print a command as a user types it, and its purpose."""
    click.echo(_INDENT + click.style(f"$ aileron {visible(shlex.join(arguments))}", fg="cyan"))
    _print(meaning, _INDENT + "    ")


def print_quoted(text: str) -> None:
    """Print foreign text with a vertical bar before each line, and with invisible characters made visible."""
    for line in visible(text.rstrip("\n"), multiline=True).split("\n"):
        _print(line, f"{_INDENT}  │ ")


def print_output(text: str) -> None:
    """Print the output of a command of Aileron, with invisible characters made visible."""
    for line in visible(text.rstrip("\n"), multiline=True).split("\n"):
        click.echo(_INDENT + line)
