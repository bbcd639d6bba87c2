"""In which places two JSON values differ, told so that a person finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ._json import JSON
from ._runs import Change, Run
from ._strict import json_pointer

MOST_CHANGES = 100
_MORE = "There are more differences than these; compare the whole."


def differences(before: JSON, after: JSON) -> tuple[Change, ...]:
    """Where C{after} is otherwise than C{before}: objects by their keys, arrays by their places, all else whole.

    Types count: C{1} is not C{true}, and not C{"1"}.

    :return: at most L{MOST_CHANGES}; where there are more, one of the kind C{more} follows, and says so in C{after}.
    """
    found = tuple(islice(_changes("", before, after), MOST_CHANGES + 1))
    return found if len(found) <= MOST_CHANGES else (*found[:MOST_CHANGES], Change("", "more", None, _MORE))


def edits(run: Run) -> tuple[Change, ...]:
    """What the operator has edited of the arguments that were asked for; empty also where it was edited back."""
    return () if run.asked is None else differences(run.asked, run.arguments)


def _changes(pointer: str, before: JSON, after: JSON) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _members(pointer, before, after)
    elif _is_array(before) and _is_array(after):
        yield from _members(pointer, _numbered(before), _numbered(after))
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


def _numbered(array: JSON) -> Mapping[str, JSON]:
    return {str(index): item for index, item in enumerate(array)} if isinstance(array, Sequence) else {}


def _is_array(value: JSON) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(before: JSON, after: JSON) -> bool:
    return isinstance(before, bool) is isinstance(after, bool) and before == after
