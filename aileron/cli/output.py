"""Prints all output of commands. Foreign text always passes through L{aileron.base.text.visible}."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click

from aileron.base.json import JSON, from_timestamp, utc
from aileron.base.text import visible

from ._folding import GAP, NONE, count_columns, fold_line, fold_text, pad
from ._tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

_MARGIN, _MARGIN_FOLDED = "│ ", "┆ "
Columns: TypeAlias = Mapping[str, str | Callable[[Mapping[str, Any]], object]]
"""The titles of a table, each with the key of its value in an item, or a function that returns the value."""

_DELETE = "\x7f"  # the one control character that JSON leaves unescaped
ends_with_command = re.compile(r"(.*?:) (aileron .*)", re.DOTALL).fullmatch
_UTC, _WIDTH = "aileron.utc", "aileron.width"
_COMMAND = ("aileron ", "$ ")
"""The beginnings of lines that are copied into a shell, which are never broken."""

_MINUTE, _HOUR = 60, 3600
_SOON_SECONDS, _REFRESH_SECONDS = 0.5, 0.1
_DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def say(template: str = "", **values: object) -> None:
    """Print C{template} as a line, with C{values} in its braces. Control characters in the values are made visible."""
    _print(format_line(template, **values))


def _print(line: str, *, err: bool = False, bold: bool = False) -> None:
    """Print a line, folded so that the terminal breaks no word."""
    stripped = line.lstrip(" ")
    indent = len(line) - len(stripped) + len(GAP)
    width = 0 if stripped.startswith(_COMMAND) else line_width(sys.stderr if err else None)
    ending = ends_with_command(line) if 0 < width < count_columns(line) else None
    folded = fold_line(line if ending is None else ending[1], width, indent)
    for each in folded if ending is None else (*folded, " " * indent + ending[2]):
        click.echo(click.style(each, bold=True) if bold else each, err=err)


def line_width(stream: IO[str] | None = None) -> int:
    """Return the width of a line: the terminal's columns, or 0 for a pipe or if unknown.

    :param stream: the stream to write to, or None for standard output.
    """
    context = click.get_current_context(silent=True)
    given: int = context.meta.get(_WIDTH, 0) if context is not None else 0
    stream = stream or sys.stdout
    return given or (shutil.get_terminal_size((0, 0)).columns if stream.isatty() else 0)


def set_width(context: click.Context, _parameter: click.Parameter, width: int) -> None:
    """Set the width of lines for the rest of the command, as on a terminal. 0 changes nothing."""
    context.meta[_WIDTH] = width


def format_line(template: str, **values: object) -> str:
    """Return the line that L{say} prints."""
    return template.format_map({name: visible(_cell(item)) for name, item in values.items()})


def complain(template: str, **values: object) -> None:
    """Print an error line on standard error, after the program's name."""
    _print("aileron: " + format_line(template, **values), err=True)


def note(template: str, **values: object) -> None:
    """Print a message on standard error that is not a result."""
    _print(format_line(template, **values), err=True)


def when(moment: str | None, *, relative: bool = True) -> str:
    """Return a time for people: C{2 min ago}, C{today 17:31} or C{2026-03-01 09:00}, in local time, or a dash if none.

    With C{--utc} it is the exact time, as C{--json} prints it. Text that is not a time is returned unchanged.

    :param moment: the time in the format of L{aileron.base.json.timestamp}.
    :param relative: whether a time within the last hour is given in minutes ago.
    """
    context = click.get_current_context(silent=True)
    if moment is None or (context is not None and context.meta.get(_UTC)):
        return NONE if moment is None else moment
    clock = getattr(None if context is None else context.obj, "wall", time.time)
    try:
        return _describe(from_timestamp(moment).astimezone(), utc(clock()).astimezone(), relative=relative)
    except (ValueError, OverflowError):
        return moment


def _describe(then: datetime, now: datetime, *, relative: bool) -> str:
    ago = (now - then) // timedelta(seconds=1)
    if relative and 0 <= ago < _HOUR:
        return f"{ago // _MINUTE} min ago" if ago >= _MINUTE else "just now"
    days = (then.date() - now.date()).days
    return f"{_DAYS[days]} {then:%H:%M}" if days in _DAYS else f"{then:%Y-%m-%d %H:%M}"


def keep_exact(context: click.Context, _parameter: click.Parameter, exact: bool) -> None:
    """If C{--utc} was given, make L{when} return exact times for the rest of the command."""
    context.meta[_UTC] = exact


def heading(template: str, **values: object) -> None:
    """Print the heading of a section, in bold on a terminal."""
    _print(format_line(template, **values), bold=True)


def capture_lines(show: Callable[[], None]) -> list[str]:
    """Return the lines that C{show} prints, as plain text, instead of printing them."""
    kept = io.StringIO()
    with redirect_stdout(kept):
        show()
    return [click.unstyle(line) for line in kept.getvalue().removesuffix("\n").split("\n")]


def show(as_json: bool, answer: Mapping[str, Any], print_answer: Callable[[], object]) -> None:
    """Print an answer as JSON, or call C{print_answer}."""
    if as_json:
        say_json(answer)
    else:
        print_answer()


def say_json(value: JSON) -> None:
    """Print a value as ASCII JSON, so that nothing in it acts on a terminal."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, default=dict).replace(_DELETE, "\\u007f"))


def block(text: str, indent: str = "", *, err: bool = False) -> None:
    """Print a text of many lines, each after a margin, so that none can be mistaken for a line of ours."""
    for line in margined(text, indent, sys.stderr if err else None):
        click.echo(line, err=err)


def margined(text: str, indent: str = "", stream: IO[str] | None = None) -> list[str]:
    """Return the lines that L{block} prints. The continuation of a line has another margin.

    :param stream: the stream to print to, as in L{line_width}.
    """
    room = line_width(stream) - len(indent) - len(_MARGIN)
    return [
        f"{indent}{_MARGIN_FOLDED if number else _MARGIN}{piece}"
        for line in visible(text, multiline=True).split("\n")
        for number, piece in enumerate(fold_text(line, room))
    ]


def value(label: str, given: JSON, indent: str = "", *, multiline: bool = False, width: int = 0) -> None:
    """Print one value in full, beside its label, or below it if it has several lines."""
    text = in_words(given)
    if multiline or (not isinstance(given, str) and "\n" in text):
        click.echo(f"{indent}{visible(label)}")
        block(text, indent + "  ")
    else:
        for line in beside(f"{indent}{pad(visible(label), width)}{GAP}", visible(text), indent + GAP):
            click.echo(line)


def beside(label: str, text: str, indent: str) -> list[str]:
    """Return the lines of a text beside its label, or below it if a word fits only there.

    :param indent: the text before each line below the label.
    """
    width, hanging = line_width(), count_columns(label)
    longest = max(map(count_columns, text.split(" ")))
    if hanging + longest <= width or hanging + count_columns(text) <= width or len(indent) + longest > width:
        return fold_line(label + text, width, hanging)
    return [label.rstrip(), *fold_line(indent + text, width, len(indent))]


def values(pairs: Mapping[str, JSON], indent: str = "") -> None:
    """Print values one below the other, each beside its label."""
    width = max((count_columns(visible(label)) for label in pairs), default=0)
    for label, given in pairs.items():
        value(label, given, indent, width=width)


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below titles, aligned. No cell is cut. On a terminal the table fits its width."""
    cells = [list(titles), *([visible(_cell(cell)) for cell in row] for row in rows)]
    width = line_width()
    if width or sys.stdout.isatty():
        print_table(titles, cells[1:], width=width)
        return
    widths = [max(count_columns(row[column]) for row in cells) for column in range(len(titles))]
    for row in cells:
        line = GAP.join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        click.echo(line)


@contextmanager
def progress(
    doing: str,
    total: int = 0,
    done: Callable[[], int] | None = None,
    *,
    console: Console | None = None,
    soon: float = _SOON_SECONDS,
) -> Iterator[None]:
    """Show a progress line on a terminal while the block runs. In a pipe, or with C{--json}, show nothing.

    :param total: the amount of work, to show a bar.
    :param done: returns how much is done. It is called in another thread.
    :param console: where to print, or None for standard error.
    :param soon: the delay in seconds, so that nothing flashes.
    """
    context = click.get_current_context(silent=True)
    for_program = context is not None and context.params.get("as_json")
    if for_program or (console is None and not (sys.stderr and sys.stderr.isatty())):
        yield
        return
    over = Event()

    def show() -> None:
        if not over.wait(soon):
            _draw_progress(over, console, visible(doing), total, done or (lambda: 0))

    shown = Thread(target=show)
    shown.start()
    try:
        yield
    finally:
        over.set()
        shown.join()


def _draw_progress(over: Event, console: Console | None, doing: str, total: int, done: Callable[[], int]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    console = console or Console(stderr=True)
    if not console.is_interactive:
        return
    columns = [SpinnerColumn("line"), TextColumn("{task.description}", markup=False)]
    columns += [BarColumn(), TaskProgressColumn()] if total else []
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as drawn:
        task = drawn.add_task(doing, total=total or None)
        while True:
            drawn.update(task, completed=done(), refresh=True)
            if over.wait(_REFRESH_SECONDS):
                return


def in_words(given: JSON, *, sort_keys: bool = False) -> str:
    """Return a value as text: a string unchanged, None as a dash, anything else as JSON.

    :param sort_keys: whether to sort keys, so that equal values give equal texts.
    """
    if given is None:
        return NONE
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False, indent=2, default=dict, sort_keys=sort_keys)


def in_line(arguments: Mapping[str, JSON], most: int = 60) -> str:
    """Return the arguments of a call on one line, cut after C{most} characters."""
    words = (
        f"{name}={given if isinstance(given, str) else json.dumps(given, default=dict)}"
        for name, given in arguments.items()
    )
    line = " ".join(each.replace("\n", " ")[: most + 1] for each in words)
    return line if len(line) <= most else line[: most - 1] + "…"


def time_at(key: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats, for a table, the time at C{key} of an item, as L{when} does."""
    return lambda item: when(item.get(key))


def table_of(columns: Columns, items: Iterable[Mapping[str, Any]]) -> None:
    """Print a table with a row for each item and the given columns."""
    table(tuple(columns), (tuple(fields_of(columns, item).values()) for item in items))


def fields_of(columns: Columns, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each column shows for an item, by the column's title."""
    return {title: item.get(each) if isinstance(each, str) else each(item) for title, each in columns.items()}


def listed(as_json: bool, answer: Mapping[str, Any], columns: Columns, nothing: str) -> None:
    """Print a list from the daemon: as JSON, as a table, or C{nothing} if it is empty."""
    if as_json:
        say_json(answer)
    elif answer.get("items"):
        table_of(columns, answer["items"])
        if answer.get("cursor"):
            note("More results: add --cursor {cursor}", cursor=answer["cursor"])
    else:
        say(nothing)


def _cell(cell: object) -> str:
    return NONE if cell is None else str(cell)
