"""Finds the differences of two JSON values, and names each place for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from aileron.base.json import JSON, json_pointer
from aileron.model.reviews import Review
from aileron.model.runs import Change, Run

MOST_CHANGES = 100
_MORE = "There are more differences than these; compare the whole."


def differences(before: JSON, after: JSON) -> tuple[Change, ...]:
    """Return the differences of two values: objects by key, arrays by position, other values as a whole.

    Types count: C{1} differs from C{true} and from C{"1"}.

    :return: at most L{MOST_CHANGES}. If there are more, a last one of the kind C{more} is added.
    """
    found = tuple(islice(_changes("", before, after), MOST_CHANGES + 1))
    return found if len(found) <= MOST_CHANGES else (*found[:MOST_CHANGES], Change("", "more", None, _MORE))


def edits(run: Run) -> tuple[Change, ...]:
    """Return the operator's edits: the differences between the requested and the present arguments. Empty if none."""
    return () if run.asked is None else differences(run.asked, run.arguments)


def _changes(pointer: str, before: JSON, after: JSON) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _members(pointer, before, after)
    elif _is_array(before) and _is_array(after):
        yield from _members(pointer, _number(before), _number(after))
    elif not _same(before, after):
        yield Change(pointer, "changed", before, after)


def _members(pointer: str, before: Mapping[str, JSON], after: Mapping[str, JSON]) -> Iterator[Change]:
    for name in (*before, *(name for name in after if name not in before)):
        place = json_pointer(pointer, name)
        if name not in after:
            yield Change(place, "removed", before=before[name])
        elif name not in before:
            yield Change(place, "added", after=after[name])
        else:
            yield from _changes(place, before[name], after[name])


def _number(array: JSON) -> Mapping[str, JSON]:
    return {str(index): item for index, item in enumerate(array)} if isinstance(array, Sequence) else {}


def _is_array(value: JSON) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(before: JSON, after: JSON) -> bool:
    return isinstance(before, bool) is isinstance(after, bool) and before == after


def place(pointer: str, review: Review) -> str:
    """Return words for a place in a review.

    They are the label of an argument, C{preview:} with the label of a line, C{step} with the id of a step and the
    changed part, C{preview}, or C{the action's file}. A step that no longer exists is named by its index.

    :param pointer: RFC 6901. Its target need not exist any more.
    :return: words that contain foreign words, or the pointer if the place is not known.
    """
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    match parts:
        case ["fields", index, *_]:
            return _name([each.label for each in review.arguments], index) or pointer
        case ["preview", "fields", index, *rest]:
            label = _name([each.label for each in review.shown_preview.fields], index)
            return f"preview: {' '.join([label, *(each for each in rest if each != 'value')])}" if label else pointer
        case ["preview", *rest]:
            return " ".join(["preview:", *rest]).replace("_", " ") if rest else "preview"
        case ["steps", index, *rest]:
            step = _name([each.id for each in review.steps], index) or index
            what = ["the connector's file"] if rest == ["content_hash"] else rest
            return " ".join([f"step {step}:", *what]).replace("_", " ")
        case ["manifest_digest"]:
            return "the action's file"
    return pointer


def _name(names: Sequence[str], index: str) -> str | None:
    """Return the item of C{names} at the position that C{index} gives in decimal, or None if there is none."""
    is_there = index.isdecimal() and len(index) <= 6 and int(index) < len(names)
    return names[int(index)] if is_there else None
