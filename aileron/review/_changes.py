"""Finds where two JSON values or two texts differ, and names the place for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from aileron.base.json import JSON, json_pointer
from aileron.model.reviews import Review
from aileron.model.runs import Change, Run

MOST_CHANGES = 100
_MORE = "There are more differences than these; compare the whole."


def differences(before: JSON, after: JSON) -> tuple[Change, ...]:
    """Find where C{after} is otherwise than C{before}: objects by their keys, arrays by their places, all else whole.

    Types count: C{1} is not C{true}, and not C{"1"}.

    :return: at most L{MOST_CHANGES}; where there are more, one of the kind C{more} follows, and says so in C{after}.
    """
    found = tuple(islice(_changes("", before, after), MOST_CHANGES + 1))
    return found if len(found) <= MOST_CHANGES else (*found[:MOST_CHANGES], Change("", "more", None, _MORE))


def edits(run: Run) -> tuple[Change, ...]:
    """Find what the operator has edited of the arguments that were asked for; empty also where it was edited back."""
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
    """Name what stands at C{pointer} of C{review}: an argument or a line of the preview by its label, a step by its id.

    :param pointer: RFC 6901; what it leads to need not be there any more.
    :return: foreign words among it; of a place that is not known the pointer.
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
    """Return what the item at C{index} is called; L{None}: it is not there."""
    is_there = index.isdecimal() and len(index) <= 6 and int(index) < len(names)
    return names[int(index)] if is_there else None
