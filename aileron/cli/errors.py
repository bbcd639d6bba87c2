"""Tells a person what went wrong: what happened, what was kept, what to do. Never a traceback."""

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
"""Since click 8.2 the help of a group is an error; before, click prints it."""

_SURE_HERE = frozenset(("vault_locked", "outcome_unknown"))
"""Classes whose advice is right wherever it is raised; that of the others is about what the daemon was asked."""


class CommandError(Exception):
    """A command cannot go on; its message is a sentence of ours, already fit to be shown.

    :ivar hint: what to do about it, or L{None}.
    :ivar output: lines that another process wrote about it.
    """

    def __init__(self, message: str, hint: str | None = None, output: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.output = output


def report(error: BaseException, listing: str = "") -> int:
    """Tell the person about C{error} on standard error; the exit code that it means.

    :param listing: the command that lists what there is of the kind that was asked for.
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
    """Return a line in two, the command that it ends with on a line of its own; or as it is."""
    found = ends_with_command(line)
    return (line,) if found is None else (found[1], f"  {found[2]}")


def lines_of(error: BaseException) -> Sequence[str]:
    """Tell what is to be said about it: first what happened, then what to do."""
    return tuple(_lines(error))


def place_of(fault: Mapping[str, Any]) -> str:
    """Write where a fault of a file is, as the daemon tells it."""
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
    # Imported here: a command that asks no daemon loads no client.
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
    """Yield what is wrong with an input, each with its place."""
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
