"""What went wrong, said to a person: what happened, what was kept, what to do.  Never a traceback."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from aileron.errors import AileronError

from ._output import complain, note

FAILED, USAGE, PENDING, INTERRUPTED = 1, 2, 75, 130

LOST = "There is history but no vault file: put secrets.json back from a copy, or begin anew: aileron vault reset"


DAMAGED = "Put secrets.json back from a copy, or begin anew: aileron vault reset"


class Trouble(Exception):
    """A command cannot go on; its message is a sentence of ours, already fit to be shown.

    :ivar hint: what to do about it, or L{None}.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def report(error: BaseException) -> int:
    """Tell the person about C{error} on standard error; the exit code that it means."""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        return _report_click(error)
    lines = lines_of(error)
    complain("{line}", line=lines[0])
    for line in lines[1:]:
        note("  {line}", line=line)
    return FAILED


def lines_of(error: BaseException) -> Sequence[str]:
    """What is said about it: first what happened, then what to do."""
    return tuple(_lines(error))


def _report_click(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    complain("{message}", message=error.format_message())
    if isinstance(error, click.UsageError):
        path = context.command_path if context else "aileron"
        note("  Try: {path} --help", path=path)
        return USAGE
    return error.exit_code


def _lines(error: BaseException) -> Iterator[str]:
    if isinstance(error, Trouble):
        yield error.message
        if error.hint:
            yield error.hint
    elif isinstance(error, AileronError):
        yield error.message
        yield from _about(error.kind, error.details)
    elif isinstance(error, OSError):
        yield f"{error.strerror or type(error).__name__}{f': {error.filename}' if error.filename else ''}"
    else:
        yield from _of_the_client(error)


def _of_the_client(error: BaseException) -> Iterator[str]:
    # Imported here: a command that asks no daemon loads no client.
    from aileron.client import DaemonError, DaemonFault, DaemonUnreachable

    if isinstance(error, DaemonFault):
        yield error.message
        yield from _about(error.fault.kind, error.fault.details)
        if error.run_id:
            yield f"The run is kept: aileron runs show {error.run_id}"
    elif isinstance(error, DaemonUnreachable):
        yield error.message
        yield _whether_sent(error.sent)
    elif isinstance(error, DaemonError):
        yield error.message
    else:
        yield f"This is a fault of Aileron itself ({type(error).__name__} at {_place(error)})."
        yield "Please report it with the command that you gave; no secret is in this message."


def _about(kind: str, details: Mapping[str, Any]) -> Iterator[str]:
    """What the details of a fault tell a person."""
    problems = details.get("problems")
    for problem in problems if isinstance(problems, (list, tuple)) else ():
        if isinstance(problem, Mapping):
            yield f"{problem.get('pointer') or '/'}: {problem.get('message')}"
    if kind == "vault_locked":
        yield _vault_hint(details.get("state"))
    elif kind == "outcome_unknown":
        yield "Find out whether it happened, then: aileron runs settle <run> --happened (or --did-not-happen)"


def _vault_hint(state: object) -> str:
    if state == "missing":
        return "Make a vault first: aileron vault init"
    if state == "lost":
        return LOST
    return "Unlock it: aileron vault unlock"


def _whether_sent(sent: bool) -> str:
    if sent:
        return "The request may have arrived: look with aileron runs list before you ask again."
    return "Nothing was sent. Is it running? aileron daemon status"


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
