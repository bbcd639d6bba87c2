"""Prints errors for people: what happened, what was kept, what to do. Never a traceback."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from aileron.model.errors import AileronError
from aileron.model.faults import ADVICE, what_then, what_was_kept

from .output import block, complain, ends_with_command, note

FAILED, USAGE, UNCONFIRMED, PENDING, INTERRUPTED = 1, 2, 69, 75, 130

LOST = what_then("vault_locked", "", {"state": "lost"})


DAMAGED = "Restore secrets.json from a copy, or start over: aileron vault reset"


_HELP = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Since click 8.2 a group's help is raised as an error. Earlier versions print it."""

_SURE_HERE = frozenset(("vault_locked", "outcome_unknown"))
"""Classes whose advice is right wherever they are raised. The advice of others concerns the request."""


class CommandError(Exception):
    """A command cannot continue. Its message is safe to show.

    :ivar hint: the remedy, or None.
    :ivar output: lines that another process printed about the error.
    """

    def __init__(self, message: str, hint: str | None = None, output: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.output = output


def report(error: BaseException, listing: str = "") -> int:
    """Print C{error} on standard error, and return its exit code. For an interruption, print nothing.

    :param listing: the command that lists the objects of the requested kind.
    """
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        return _report_click(error)
    lines = lines_of(error)
    complain("{line}", line=lines[0])
    if isinstance(error, CommandError):
        for line in error.output:
            block(line, "  ", err=True)
    for line in lines[1:]:
        missing = listing and line == ADVICE["not_found"].then
        for part in apart(f"See what exists: {listing}" if missing else line):
            note("  {part}", part=part)
    return FAILED


def apart(line: str) -> Sequence[str]:
    """Return a line and the command at its end as two lines, or the line alone if it does not end with a command."""
    found = ends_with_command(line)
    return (line,) if found is None else (found[1], f"  {found[2]}")


def lines_of(error: BaseException) -> Sequence[str]:
    """Return the lines to print: first what happened, then what to do."""
    return tuple(_lines(error))


def place_of(fault: Mapping[str, Any]) -> str:
    """Return the place of a fault in a file, from the daemon's data."""
    return f"{fault['file']}:{fault['line']}" if fault.get("line") else str(fault["file"])


def _report_click(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    if isinstance(error, _HELP):  # a group without a command: its help is many lines
        click.echo(error.format_message(), err=True)
        return USAGE
    complain("{message}", message=" ".join(error.format_message().split()))
    if isinstance(error, click.UsageError):
        path = context.command_path if context else "aileron"
        note("  Try: {path} --help", path=path)
        return USAGE
    return error.exit_code


def _lines(error: BaseException) -> Iterator[str]:
    if isinstance(error, CommandError):
        yield error.message
        if error.hint:
            yield error.hint
    elif isinstance(error, AileronError):
        yield error.message
        yield from _problems(error.details)
        if error.kind in _SURE_HERE:
            yield from filter(None, (what_then(error.kind, error.message, error.details),))
    elif isinstance(error, OSError):
        yield f"{error.strerror or type(error).__name__}{f': {error.filename}' if error.filename else ''}"
    else:
        yield from _of_the_client(error)


def _of_the_client(error: BaseException) -> Iterator[str]:
    # Imported here: a command that needs no daemon loads no client.
    from aileron.client import DaemonError, DaemonFault, DaemonUnreachable

    if isinstance(error, DaemonFault):
        yield error.message
        yield from filter(None, (what_was_kept(error.fault.kind, error.message),))
        yield from _problems(error.fault.details)
        yield from filter(None, (what_then(error.fault.kind, error.message, error.fault.details),))
        if error.run_id:
            yield f"See the run: aileron run show {error.run_id}"
    elif isinstance(error, DaemonUnreachable):
        yield error.message
        yield _whether_sent(error.sent)
    elif isinstance(error, DaemonError):
        yield error.message
    else:
        yield f"Internal error in Aileron ({type(error).__name__} at {_place(error)})."
        yield "Please report it, with the command that you ran. This message contains no secrets."


def _problems(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of an input, each with its place."""
    problems = details.get("problems")
    for problem in problems if isinstance(problems, (list, tuple)) else ():
        if isinstance(problem, Mapping):
            yield f"{problem.get('pointer') or '/'}: {problem.get('message')}"


def _whether_sent(sent: bool) -> str:
    if sent:
        return "The request may have been received. Check before you retry: aileron run list"
    return "Nothing was sent. Check whether the daemon is running: aileron status"


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown location"
