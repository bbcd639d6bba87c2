"""Places in a review, in words for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._json import JSON


def place(pointer: str, review: JSON) -> str:
    """What stands at C{pointer} of C{review}: an argument or a line of the preview by its label, a step by its id.

    :param pointer: RFC 6901; what it leads to need not be there any more.
    :return: foreign words among it; of a place that is not known the pointer.
    """
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    match parts:
        case ["fields", index, *_]:
            return _named(review, "fields", index, "label") or pointer
        case ["preview", "fields", index, *rest]:
            label = _named(_member(review, "preview"), "fields", index, "label")
            return f"preview: {' '.join([label, *(each for each in rest if each != 'value')])}" if label else pointer
        case ["preview", *rest]:
            return " ".join(["preview:", *rest]).replace("_", " ") if rest else "preview"
        case ["steps", index, *rest]:
            return " ".join([f"step {_named(review, 'steps', index, 'id') or index}:", *rest]).replace("_", " ")
        case ["manifest_digest"]:
            return "the action's file"
    return pointer


def _named(value: JSON, name: str, index: str, label: str) -> str | None:
    """What the item at C{index} of the array C{name} is called."""
    items = _member(value, name)
    if not isinstance(items, Sequence) or isinstance(items, str) or not index.isdecimal() or len(index) > 6:
        return None
    found = _member(items[int(index)], label) if int(index) < len(items) else None
    return found if isinstance(found, str) else None


def _member(value: JSON, name: str) -> JSON:
    return value.get(name) if isinstance(value, Mapping) else None
