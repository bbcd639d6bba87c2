"""Shows files for which trust is requested: each whole, after its warnings."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from aileron.base.text import visible
from aileron.cli._folding import count_columns
from aileron.cli.context import CliContext
from aileron.cli.output import beside, format_line, margined

Item = Mapping[str, Any]

_QUESTION_ROWS = 4
"""The rows of the terminal reserved for the prompt and the question."""
_MOST_ROWS = 800
"""The scrollback that common terminals provide. Longer texts are shown in a pager."""
_KEYS = r"Space\: next page   b\: previous page   q\: leave, and go on"
_PROMPT = "-R " + " ".join(f"-P{prompt}{_KEYS}$" for prompt in "smM")
"""Options of C{less}: its short, medium and long prompts. A dollar sign ends the text of an option."""
_WHAT = {
    "action": "action {name}",
    "connector": "connector {name}",
    "config": "the configuration, {name}",
}


def page_text(text: str, page: Callable[[str], object] = click.echo_via_pager) -> None:
    """Show a text in a pager whose last row explains how to scroll and quit.

    :param page: shows a text in a pager. C{less} reads its options from the environment.
    """
    own = os.environ.get("LESS")
    os.environ["LESS"] = _PROMPT if own is None else f"{own}${_PROMPT}"
    try:
        page(text)
    finally:
        if own is None:
            del os.environ["LESS"]
        else:
            os.environ["LESS"] = own


def show_items(cli: CliContext, items: Sequence[Item], page: Callable[[str], object] = page_text) -> None:
    """Print items whole, in a pager if they exceed the terminal's scrollback.

    If they exceed the screen, repeat the summary of each item, so that it is visible with the question.

    :param page: shows a text in a pager.
    """
    lines = [line for item in items for line in _lines(item)]
    at_terminal = cli.interactive() and sys.stdout.isatty()
    if at_terminal and is_long(lines, _MOST_ROWS):
        page("\n".join(lines))
    else:
        click.echo("\n".join(lines))
    if at_terminal and is_long(lines, shutil.get_terminal_size().lines - _QUESTION_ROWS):
        click.echo("\n".join(line for item in items for line in _summarize(item)))


def is_long(lines: Iterable[str], rows: int) -> bool:
    """Return True if the lines take more than C{rows} rows of this terminal. A long line takes several rows."""
    width = shutil.get_terminal_size().columns
    return sum(-(-count_columns(line) // width) or 1 for line in lines) > rows


def _summarize(item: Item) -> Sequence[str]:
    """Return the lines of L{_lines} without the difference to the trusted file, so that the question stays visible."""
    lines = list(_lines(item))
    return lines[: len(lines) - len(margined(item["difference"], "  "))]


def _lines(item: Item) -> Iterable[str]:
    """Yield the lines of one item in full, with every character visible."""
    if item.get("unasked"):
        words = format_line("{name} makes changes without asking you.", name=item["name"])
        yield click.style(words, fg="red", bold=True)
        yield "  To be asked before each run, write `required = true` under `[approval]` in its file first."
    yield click.style(f"{what(item)}: {_how(item)}", bold=True)
    yield format_line("  file    {path}", path=item["path"])
    yield from beside("  digest  ", visible(item["digest"]), "    ")
    yield from margined(item["difference"], "  ")


def what(item: Item) -> str:
    """Return the item's kind and name in words."""
    return format_line(_WHAT[item["kind"]], name=item["name"])


def _how(item: Item) -> str:
    lines = "1 line" if item["lines"] == 1 else f"{item['lines']} lines"
    size = f"{lines}, {item['bytes']} bytes"
    if item["state"] == "new":
        return f"new, {size}"
    return f"changed since you trusted it on {str(item['trusted']['changed_at'])[:10]} (now {size})"
