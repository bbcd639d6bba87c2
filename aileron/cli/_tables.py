"""Tables at a terminal: columns that fit its width, and states in colour."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_STATE = "STATE"
_COPIED = "ID"  # in one piece
_COLOURS = {
    **dict.fromkeys(("active", "bound", "built in", "completed", "enabled", "trusted", "working"), "green"),
    **dict.fromkeys(("changed", "failed", "failing", "needs rebind", "needs setup", "unknown"), "red"),
    **dict.fromkeys(("approved", "awaiting_vault", "check", "executing", "new", "pending_approval"), "yellow"),
}


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], console: Console | None = None) -> None:
    """Print rows below titles; a cell that is too wide is continued in the next line, and nothing is cut.

    Colours are left out where C{NO_COLOR} is set.

    :param rows: of texts that are fit to be shown.
    """
    console = console or Console(file=sys.stdout, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(Text(title), overflow="fold", no_wrap=title == _COPIED)
    for row in rows:
        table.add_row(*(Text(cell, _style(title, cell)) for title, cell in zip(titles, row, strict=True)))
    console.print(table)


def _style(title: str, cell: str) -> str:
    return _COLOURS.get(cell, "") if title == _STATE else ""
