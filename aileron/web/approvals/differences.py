"""Differences as rows: where, what was there, and what is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from twisted.web.template import Tag

from aileron.values import JSON, Change, comparing_steps, place, visible

from .boxes import box
from .reading import reading

_FEW_LINES = 4
_MOST_STEPS = 2_000_000  # of comparing: a tenth of a second, and both texts are there whole


def rows(tag: Tag, changes: Iterable[Change], review: JSON, name: str) -> Iterator[Tag]:
    """C{tag} filled in for each of C{changes}, each place in words.

    :param name: with which the ids of the texts begin.
    """
    for number, change in enumerate(changes):
        before = _text(change.before, f"{name}-{number}-before", there=change.kind != "added")
        after = _text(change.after, f"{name}-{number}-after", there=change.kind != "removed")
        if change.kind == "more":
            yield tag.clone().fillSlots(
                **{"place": "…", "was": "", "before": "", "is": "", "after": after, "lines": ""}
            )
            continue
        where = visible(place(change.path, review).removeprefix("/")) or "all of it"
        yield tag.clone().fillSlots(
            **{"place": where, "was": "It was:", "before": before, "is": "It is:", "after": after},
            lines=_lines(change.before, change.after),
        )


def _text(value: JSON, name: str, *, there: bool) -> Tag | str:
    return box(reading(value), name) if there else "nothing"


def _lines(before: JSON, after: JSON) -> str:
    """Of two texts in several lines those that differ, with what stands around them; nothing of others."""
    if not (isinstance(before, str) and isinstance(after, str)):
        return ""
    pages = before.split("\n"), after.split("\n")
    if max(map(len, pages)) < _FEW_LINES or comparing_steps(*pages) > _MOST_STEPS:
        return ""
    differing = difflib.unified_diff(*pages, "was", "is", lineterm="", n=1)
    return visible("\n".join(differing), multiline=True)
