"""Differences as rows: where, what was there, and what is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twisted.web.template import Tag

from aileron.values import JSON, Change, place, visible
from aileron.web._texts import shown

_NOTHING = "nothing"


def rows(tag: Tag, changes: Iterable[Change], review: JSON) -> Iterator[Tag]:
    """C{tag} filled in for each of C{changes}, each place in words."""
    for change in changes:
        if change.kind == "more":
            yield tag.clone().fillSlots(place="…", was="", before="", **{"is": "", "after": shown(change.after)})
            continue
        where = visible(place(change.path, review).removeprefix("/")) or "all of it"
        before = _NOTHING if change.kind == "added" else shown(change.before)
        after = _NOTHING if change.kind == "removed" else shown(change.after)
        yield tag.clone().fillSlots(place=where, was="It was:", before=before, **{"is": "It is:", "after": after})
