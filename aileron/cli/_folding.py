"""Breaks long lines between words, so that the terminal does not break words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

GAP, NONE = "  ", "-"
"""The separator of a table's columns, and the text of an empty cell."""

_LEAST_COLUMNS = 20
_BREAKS = frozenset(" ,;:/&?")


def count_columns(text: str) -> int:
    """Return the number of terminal columns that the text occupies."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    marks = sum(unicodedata.combining(character) > 0 for character in text)
    return len(text) + wide - marks


def pad(text: str, width: int) -> str:
    """Return the text padded with spaces to at least C{width} columns."""
    return text + " " * max(0, width - count_columns(text))


def fold_line(line: str, width: int, indent: int) -> list[str]:
    """Break a line at spaces into lines that fit a terminal.

    A word longer than a line stays whole, so that it can be copied: the terminal breaks it.

    :param width: the terminal's width in columns. If it is 0 (unknown), the line is not broken.
    :param indent: the spaces before each line after the first.
    """
    if width < _LEAST_COLUMNS or count_columns(line) <= width:
        return [line]
    margin = " " * min(indent, width // 2)
    first, *words = line.split(" ")
    folded, columns = [first], count_columns(first)
    blank = not first and len(line) - len(line.lstrip(" ")) < width  # do not break a line within its own indentation
    for word in words:
        size = count_columns(word)
        if columns + 1 + size > width and not blank:
            folded[-1] = folded[-1].rstrip(" ")
            folded.append(margin + word)
            columns, blank = len(margin) + size, not word
        else:
            folded[-1] += " " + word
            columns, blank = columns + 1 + size, blank and not word
    return folded


def fold_text(line: str, width: int) -> list[str]:
    """Break a line of foreign text into pieces that fit: after a space or punctuation if possible, else in a word.

    :param width: the width in columns. If it is less than L{_LEAST_COLUMNS}, the line is not broken.
    """
    return [line] if width < _LEAST_COLUMNS else list(_cut(line, width))


def _cut(line: str, width: int) -> Iterator[str]:
    """Yield pieces of at most C{width} columns, and, except the last, of at least half as many."""
    start = position = columns = 0
    best: dict[bool, int] = {}  # the end of the longest piece after a space (True), and after punctuation
    while position < len(line):
        character = line[position]
        size = count_columns(character)
        if columns + size > width:
            end = best.get(True) or best.get(False) or position
            yield line[start:end]
            start = position = end
            columns, best = 0, {}
            continue
        position, columns = position + 1, columns + size
        if columns * 2 > width and character in _BREAKS:
            best[character == " "] = position
    yield line[start:]
