"""Differences as rows: where, what was there, and what is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twisted.web.template import Tag

from aileron.values import JSON, Change, place, visible

from .boxes import box
from .reading import reading


def rows(tag: Tag, changes: Iterable[Change], review: JSON, name: str) -> Iterator[Tag]:
    """C{tag} filled in for each of C{changes}, each place in words.

    :param name: with which the ids of the texts begin.
    """
    for number, change in enumerate(changes):
        before = _text(change.before, f"{name}-{number}-before", there=change.kind != "added")
        after = _text(change.after, f"{name}-{number}-after", there=change.kind != "removed")
        if change.kind == "more":
            yield tag.clone().fillSlots(**{"place": "…", "was": "", "before": "", "is": "", "after": after})
            continue
        where = visible(place(change.path, review).removeprefix("/")) or "all of it"
        yield tag.clone().fillSlots(
            **{"place": where, "was": "It was:", "before": before, "is": "It is:", "after": after}
        )


def _text(value: JSON, name: str, *, there: bool) -> Tag | str:
    return box(reading(value), name) if there else "nothing"
