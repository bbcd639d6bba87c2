"""C{aileron log}: the end of the daemon's own log, or new lines as they are written."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import say
from aileron.home.lock import running_pid

_POLL_SECONDS = 0.25


@click.command("log")
@click.option("-f", "--follow", is_flag=True, help="Also print new lines, until Ctrl-C or until the daemon stops.")
@click.option("-n", "--lines", type=click.IntRange(0), default=50, show_default=True, help="Number of lines to print.")
@pass_cli
def logs(cli: CliContext, follow: bool, lines: int) -> None:
    """Print the end of the daemon's log.

    It contains no secrets, and no data of agents or services. For runs and approvals see the audit log:
    aileron audit list.
    """
    path = cli.home.log / "aileron.log"
    try:
        file = _open(path)
    except FileNotFoundError:
        raise CommandError(f"There is no log yet: {path}", "Start the daemon: aileron daemon start") from None
    with file:
        for line in deque(file, maxlen=lines):
            _print(line)
        if follow:
            for line in _growing(cli, path, file):
                _print(line)


def _growing(cli: CliContext, path: Path, file: IO[str]) -> Iterator[str]:
    """Yield lines as they are written while a daemon runs, also after the log is rotated."""
    begun = ""
    while True:
        # Checked before reading: the daemon's last lines are written before it ends.
        running = running_pid(cli.home) is not None
        newer = _open_newer(path, file)
        *lines, begun = (begun + file.read()).split("\n")
        yield from lines
        if newer is not None:
            with newer:
                yield from _growing(cli, path, newer)
            return
        if not running:
            return
        if not lines:
            cli.sleep(_POLL_SECONDS)


def _open(path: Path) -> IO[str]:
    return path.open(encoding="utf-8", errors="replace")


def _open_newer(path: Path, file: IO[str]) -> IO[str] | None:
    """Open the new file if the log was rotated. Otherwise, or if it does not exist yet, return None."""
    try:
        if os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return None
        return _open(path)
    except FileNotFoundError:
        return None


def _print(line: str) -> None:
    say("{line}", line=line.rstrip("\n"))
