"""Dotted paths into what an operation answers, as previews read them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aileron.values import JSON

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def is_path(text: str) -> bool:
    """Whether C{text} is one: segments between dots, none of them empty."""
    return bool(text) and all(segment.strip() and segment.isprintable() for segment in text.split("."))


def look_up(value: JSON, path: str) -> JSON:
    """Where C{path} leads from C{value}, or L{None}: nowhere, or to null.

    A segment is a key of an object.  On an array it is first the C{name} of an entry, of which the C{value} is taken
    (so are headers listed), else an index.
    """
    for segment in path.split("."):
        value = _child(value, segment)
    return value


def _child(value: JSON, segment: str) -> JSON:
    if isinstance(value, Mapping):
        return value.get(segment)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    for entry in value:
        if isinstance(entry, Mapping) and entry.get("name") == segment:
            return entry.get("value")
    index = int(segment) if _INDEX.fullmatch(segment) else len(value)
    return value[index] if index < len(value) else None
