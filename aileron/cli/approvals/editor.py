"""The person's own editor, in their own terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from aileron.cli._errors import CommandError

_USUAL = ("sensible-editor", "nano", "vi")


def editor_command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What edits a file here: C{VISUAL}, C{EDITOR}, or what is usual.

    :raises CommandError: there is nothing, or what is named is no command line.
    """
    path = environ.get("PATH", os.defpath)
    chosen = next(filter(None, (environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))), None)
    if chosen is not None:
        return _split(chosen)
    for name in _USUAL:
        if shutil.which(name, path=path):
            return (name,)
    raise CommandError("There is no editor here.", "Name one in EDITOR.")


def _split(chosen: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(chosen))
    except ValueError:
        words = ()
    if not words or not words[0]:
        raise CommandError("What VISUAL or EDITOR names is no command line, so no editor was started.")
    return words


def edit_file(path: Path, environ: Mapping[str, str]) -> None:
    """Open C{path} and wait until the editor is closed.

    :raises CommandError: there is no editor, or it ended badly.
    """
    command = editor_command(environ)
    try:
        with _deaf():
            status = subprocess.run((*command, str(path)), env=dict(environ), check=False).returncode
    except OSError as error:
        raise CommandError(
            f"The editor {command[0]} could not be started: {error.strerror}.", "Name another in EDITOR."
        ) from None
    if status != 0:
        raise CommandError(f"The editor ended with {status}; what it held was left alone.")


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C is the editor's while it has the terminal.  A handler, unlike SIG_IGN, is not inherited."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
