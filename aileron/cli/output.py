"""Prints everything that commands say; all foreign text goes through L{aileron.base.text.visible}."""

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
"""The titles of a table: each with the key of an item that stands below it, or with what finds that in an item."""

_DELETE = "\x7f"  # the one control character that JSON leaves as it is
ends_with_command = re.compile(r"(.*?:) (aileron .*)", re.DOTALL).fullmatch
_UTC, _WIDTH = "aileron.utc", "aileron.width"
_COMMAND = ("aileron ", "$ ")
"""How a line begins that is copied into a shell, so that it is never broken."""

_MINUTE, _HOUR = 60, 3600
_SOON_SECONDS, _REFRESH_SECONDS = 0.5, 0.1
_DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def say(template: str = "", **values: object) -> None:
    """Print a line of ours, with foreign values in its braces."""
    _print(format_line(template, **values))


def _print(line: str, *, err: bool = False, bold: bool = False) -> None:
    """Print a line of ours, in several lines where the terminal would break a word of it."""
    stripped = line.lstrip(" ")
    indent = len(line) - len(stripped) + len(GAP)
    width = 0 if stripped.startswith(_COMMAND) else line_width(sys.stderr if err else None)
    ending = ends_with_command(line) if 0 < width < count_columns(line) else None
    folded = fold_line(line if ending is None else ending[1], width, indent)
    for each in folded if ending is None else (*folded, " " * indent + ending[2]):
        click.echo(click.style(each, bold=True) if bold else each, err=err)


def line_width(stream: IO[str] | None = None) -> int:
    """Return how many columns a line may take: those of the terminal; 0 in a pipe, or where they are not known.

    :param stream: what is written to; None means standard output.
    """
    context = click.get_current_context(silent=True)
    given: int = context.meta.get(_WIDTH, 0) if context is not None else 0
    stream = stream or sys.stdout
    return given or (shutil.get_terminal_size((0, 0)).columns if stream.isatty() else 0)


def set_width(context: click.Context, _parameter: click.Parameter, width: int) -> None:
    """Have lines fit so many columns for the rest of the command, as at a terminal; 0 changes nothing."""
    context.meta[_WIDTH] = width


def format_line(template: str, **values: object) -> str:
    """Return the line that L{say} prints."""
    return template.format_map({name: visible(_cell(item)) for name, item in values.items()})


def complain(template: str, **values: object) -> None:
    """Print the same on standard error, with our name before it."""
    _print("aileron: " + format_line(template, **values), err=True)


def note(template: str, **values: object) -> None:
    """Print the same on standard error, for what is no result."""
    _print(format_line(template, **values), err=True)


def when(moment: str | None, *, relative: bool = True) -> str:
    """Write a time for people: C{2 min ago}, C{today 17:31} or C{2026-03-01 09:00}, in local time; a dash for none.

    With C{--utc} it is the exact time, as C{--json} prints it.  What is no time stays as it is.

    :param moment: as L{aileron.base.json.timestamp} wrote it.
    :param relative: whether less than an hour ago is written as so many minutes.
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
    """Have L{when} write exact times for the rest of the command, where C{--utc} was given."""
    context.meta[_UTC] = exact


def heading(template: str, **values: object) -> None:
    """Print a line that begins a part; bold where the terminal can."""
    _print(format_line(template, **values), bold=True)


def capture_lines(show: Callable[[], None]) -> list[str]:
    """Return the lines that C{show} prints, plain, in the place of printing them."""
    kept = io.StringIO()
    with redirect_stdout(kept):
        show()
    return [click.unstyle(line) for line in kept.getvalue().removesuffix("\n").split("\n")]


def show(as_json: bool, answer: Mapping[str, Any], print_answer: Callable[[], object]) -> None:
    """Print an answer as JSON, or as C{print_answer} does."""
    if as_json:
        say_json(answer)
    else:
        print_answer()


def say_json(value: JSON) -> None:
    """Print a value for programs: ASCII, so nothing in it acts on a terminal."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, default=dict).replace(_DELETE, "\\u007f"))


def block(text: str, indent: str = "", *, err: bool = False) -> None:
    """Print text of many lines, each behind a margin, so that none can pass for a line of ours."""
    for line in margined(text, indent, sys.stderr if err else None):
        click.echo(line, err=err)


def margined(text: str, indent: str = "", stream: IO[str] | None = None) -> list[str]:
    """Return the lines that L{block} prints.  What goes on from the line before has another margin.

    :param stream: what they are printed on, as of L{line_width}.
    """
    room = line_width(stream) - len(indent) - len(_MARGIN)
    return [
        f"{indent}{_MARGIN_FOLDED if number else _MARGIN}{piece}"
        for line in visible(text, multiline=True).split("\n")
        for number, piece in enumerate(fold_text(line, room))
    ]


def value(label: str, given: JSON, indent: str = "", *, multiline: bool = False, width: int = 0) -> None:
    """Print one value whole, beside its label, or below it if it has more than one line."""
    text = in_words(given)
    if multiline or (not isinstance(given, str) and "\n" in text):
        click.echo(f"{indent}{visible(label)}")
        block(text, indent + "  ")
    else:
        for line in beside(f"{indent}{pad(visible(label), width)}{GAP}", visible(text), indent + GAP):
            click.echo(line)


def beside(label: str, text: str, indent: str) -> list[str]:
    """Return the lines of a text beside its label, or below it if a word of it fits a line only there.

    :param indent: what stands before the text where it is below its label.
    """
    width, hanging = line_width(), count_columns(label)
    longest = max(map(count_columns, text.split(" ")))
    if hanging + longest <= width or hanging + count_columns(text) <= width or len(indent) + longest > width:
        return fold_line(label + text, width, hanging)
    return [label.rstrip(), *fold_line(indent + text, width, len(indent))]


def values(pairs: Mapping[str, JSON], indent: str = "") -> None:
    """Print values below each other, each beside its label."""
    width = max((count_columns(visible(label)) for label in pairs), default=0)
    for label, given in pairs.items():
        value(label, given, indent, width=width)


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below titles, aligned; no cell is cut.  At a terminal the table fits its width."""
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
    """Show a line at a terminal while the block takes its time; in a pipe, or with C{--json}, nothing.

    :param total: how much there is to do: then it is a bar.
    :param done: tells how much of it is done; called in another thread.
    :param console: where; L{None}: on standard error.
    :param soon: after so many seconds, so that nothing flashes.
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
    """Write a value as text: a string as it is, nothing as a dash, anything else as JSON.

    :param sort_keys: so that equal values are equal texts.
    """
    if given is None:
        return NONE
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False, indent=2, default=dict, sort_keys=sort_keys)


def in_line(arguments: Mapping[str, JSON], most: int = 60) -> str:
    """Write the arguments of a call on one line, cut after so many characters."""
    words = (
        f"{name}={given if isinstance(given, str) else json.dumps(given, default=dict)}"
        for name, given in arguments.items()
    )
    line = " ".join(each.replace("\n", " ")[: most + 1] for each in words)
    return line if len(line) <= most else line[: most - 1] + "…"


def time_at(key: str) -> Callable[[Mapping[str, Any]], str]:
    """Make a column of times, as L{when} writes them."""
    return lambda item: when(item.get(key))


def table_of(columns: Columns, items: Iterable[Mapping[str, Any]]) -> None:
    """Print a row for each item."""
    table(tuple(columns), (tuple(fields_of(columns, item).values()) for item in items))


def fields_of(columns: Columns, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands below each title for one item."""
    return {title: item.get(each) if isinstance(each, str) else each(item) for title, each in columns.items()}


def listed(as_json: bool, answer: Mapping[str, Any], columns: Columns, nothing: str) -> None:
    """Print a list that the daemon sent: as JSON, as a table, or C{nothing} where it is empty."""
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
