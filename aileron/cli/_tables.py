"""Prints tables that fit a terminal, without breaking names or IDs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._folding import GAP, NONE, count_columns, pad

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STATE = "STATE"
_WHOLE = frozenset(("ACTION", "CONNECTOR", "HOST", "ID", "NAME", "OPERATION", "RUN", _STATE, "TOOL"))
"""The columns whose cells are never broken, because they are copied into commands."""
_PROSE = frozenset(("ARGUMENTS", "DESCRIPTION", "FAILURE", "MEANING", "NOTE", "WHAT", "WHAT IT SAYS"))
"""The columns of prose, in which an overlong word is broken. In other columns no word is broken."""

_PADDING, _READABLE, _LONG_WORD = (0, 2, 0, 0), 10, 24
_COLOURS = {
    **dict.fromkeys(("active", "bound", "built in", "completed", "enabled", "trusted", "working"), "green"),
    **dict.fromkeys(("changed", "failed", "failing", "needs rebind", "needs setup", "needs you", "unknown"), "red"),
    "limited": "yellow",
    **dict.fromkeys(
        ("approved", "awaiting_credential", "awaiting_vault", "check", "executing", "new", "pending_approval"), "yellow"
    ),
}


def print_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], console: Console | None = None, *, width: int = 0
) -> None:
    """Print a table on a terminal: a long cell continues on the next line, and states have colours.

    If the terminal is too narrow, print each row as a block with a line for each non-empty cell.

    :param rows: texts that are safe to print.
    :param console: where to print, or None for standard output.
    :param width: the width of standard output in columns, if known.
    """
    from rich.console import Console  # loaded only for a table on a terminal, because its modules slow the start
    from rich.table import Table
    from rich.text import Text

    console = console or Console(file=sys.stdout, highlight=False, width=width or None)
    pairs = (zip(titles, row, strict=True) for row in rows)
    cells = [[Text(cell, _COLOURS.get(cell, "") if title == _STATE else "") for title, cell in row] for row in pairs]
    widths = _widths(titles, rows, console.width - len(GAP) * (len(titles) - 1))
    if widths:
        drawn = Table(box=None, pad_edge=False, padding=_PADDING, header_style="bold")
        for title, fitting in zip(titles, widths, strict=True):
            drawn.add_column(Text(title), overflow="fold", no_wrap=title in _WHOLE, width=fitting)
        for row in cells:
            drawn.add_row(*row)
        console.print(drawn)
        return
    label = max(map(count_columns, titles))
    for number, row in enumerate(cells):
        if number:
            console.print()
        _print_block(titles, row, label, console)


def _print_block(titles: Sequence[str], row: Sequence[Text], label: int, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    for title, cell in zip(titles, row, strict=True):
        longest = max(map(count_columns, cell.plain.split()), default=0)
        if title in _WHOLE or (title not in _PROSE and label + len(GAP) + longest > console.width):
            # A line wider than the terminal is broken by the terminal, which copies it unbroken.
            console.print(Text.assemble((pad(title, label) + GAP, "bold"), cell), soft_wrap=True)
        elif cell.plain not in ("", NONE):
            line = Table(box=None, pad_edge=False, padding=_PADDING, show_header=False)
            line.add_column(style="bold", no_wrap=True, width=label)
            line.add_column(overflow="fold")
            line.add_row(Text(title), cell)
            console.print(line)


def _widths(titles: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the widths of the columns, or an empty list if the columns do not fit.

    The spare room is given first to the columns that need least to show their cells in one line.
    """
    widths = _narrowest(titles, rows)
    left = room - sum(widths)
    wanted = [max(map(count_columns, (title, *cells))) for title, *cells in zip(titles, *rows, strict=True)]
    for column in sorted(range(len(titles)), key=lambda column: wanted[column] - widths[column]):
        more = max(0, min(wanted[column] - widths[column], left))
        widths[column], left = widths[column] + more, left - more
    return widths if left >= 0 else []


def _narrowest(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the smallest widths at which no title and no unbreakable word is broken."""
    widths = []
    for column, title in enumerate(titles):
        widest = max((count_columns(row[column]) for row in rows), default=0)
        longest = max((count_columns(word) for row in rows for word in row[column].split()), default=0)
        longest = min(longest, _LONG_WORD) if title in _PROSE else longest
        needed = widest if title in _WHOLE else max(min(widest, _READABLE), longest)
        widths.append(max([needed, *map(count_columns, title.split())]))
    return widths
