"""Draws two versions of a text as one, line by line: what differs is marked, and long unchanged parts are folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.web.template import Tag, tags

from aileron.base.text import visible
from aileron.review import ComparedLines

from .texts import count

_CONTEXT = 3
"""The number of unchanged lines that are shown beside a change."""

_LEAST_FOLDED = 4


def draw_hunks(compared: Sequence[ComparedLines], name: str) -> Tag:
    """Draw all lines of both versions, each with C{-}, C{+} or a space before it.

    :param name: the prefix of the folds' IDs.
    """
    last = len(compared) - 1
    drawn = [part for place, each in enumerate(compared) for part in _draw(each, f"{name}-{place}", place, last)]
    marks = {"class": "difference code hunks", "tabindex": "0", "role": "region", "aria-label": "Changes"}
    return tags.div(*drawn, **marks)


def _draw(compared: ComparedLines, name: str, place: int, last: int) -> Iterator[Tag | str]:
    if compared.kind != "same":
        tag, mark = (tags.del_, "-") if compared.kind == "gone" else (tags.ins, "+")
        yield tag(_write(compared.lines, mark))
        return
    lines = compared.lines
    head, foot = _CONTEXT if place else 0, _CONTEXT if place < last else 0
    folded = len(lines) - head - foot
    if folded < _LEAST_FOLDED:
        yield _write(lines, " ")
        return
    yield _write(lines[:head], " ")
    words = f"Show {count(folded, 'unchanged line', 'unchanged lines')}"
    yield tags.details(tags.summary(words), _write(lines[head : head + folded], " "), id=name)
    yield _write(lines[head + folded :], " ")


def _write(lines: Sequence[str], mark: str) -> str:
    return "".join(f"{mark}{visible(line)}\n" for line in lines)
