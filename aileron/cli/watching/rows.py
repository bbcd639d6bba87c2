"""Lines of text as rows of a terminal: each of its width at most, nothing left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

_GOES_ON = "↪ "
_CUT = "…"
_NARROW = frozenset(("Na", "N", "H"))


def columns(text: str) -> int:
    """How many columns the text takes at most.

    Terminals disagree about characters that are not plainly narrow, and about marks: the most that one takes counts.
    """
    if text.isascii():
        return len(text)
    return sum(1 if unicodedata.east_asian_width(character) in _NARROW else 2 for character in text)


def rows_of(lines: Sequence[str], width: int) -> tuple[str, ...]:
    """The lines, each broken where it is too long; what goes on has a mark, so that it passes for no line of ours."""
    return tuple(row for line in lines for row in _broken(line, width))


def cut(text: str, width: int) -> str:
    """The text, or its beginning and a mark that there is more."""
    if columns(text) <= width:
        return text
    return _fitting(text, width - columns(_CUT)) + _CUT


def padded(text: str, width: int) -> str:
    """The text in a cell of its own."""
    found = cut(text, width)
    return found + " " * max(0, width - columns(found))


def _broken(line: str, width: int) -> Iterator[str]:
    mark = ""
    while columns(mark + line) > width:
        begin = _fitting(line, width - columns(mark)) or line[:1]
        yield mark + begin
        line, mark = line[len(begin) :], _GOES_ON
        if not line:
            return
    yield mark + line


def _fitting(text: str, width: int) -> str:
    taken = 0
    for number, character in enumerate(text):
        taken += columns(character)
        if taken > width:
            return text[:number]
    return text
