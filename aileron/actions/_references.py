"""Templates: C{${args.x}}, C{${steps.id.path}}, C{${preview.path}}, C{$${} for a literal C{${}, and dotted paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.tables import quote

_MARK = re.compile(r"\$\$\{|\$\{(?P<inside>[^{}]*)\}|\$\{")
_ARGUMENT = re.compile(r"args\.([a-z][a-z0-9_]*)")
_PREVIEW = re.compile(r"preview\.([^.\x00-\x1f]+(?:\.[^.\x00-\x1f]+)*)")
_OUTPUT = re.compile(r"steps\.([A-Za-z0-9][A-Za-z0-9_-]*)((?:\.[^.\x00-\x1f]+)+)")


@frozen
class ArgumentReference:
    """A reference C{${args.<name>}}."""

    name: str


@frozen
class OutputReference:
    """A reference C{${steps.<step>.<path>}}."""

    step: str
    path: tuple[str, ...]


@frozen
class PreviewReference:
    """A reference C{${preview.<path>}}, with a dotted path."""

    path: str


Reference: TypeAlias = ArgumentReference | OutputReference | PreviewReference
Part: TypeAlias = str | Reference


@lru_cache(4096)
def template_parts(text: str) -> tuple[Part, ...]:
    """Split C{text} into literal pieces and references, in order. No piece is empty.

    :raises ValueError: if a C{${…}} is not a valid reference.
    """
    return tuple(part for part in _parts(text) if part != "")


def _parts(text: str) -> Iterator[Part]:
    end = 0
    for mark in _MARK.finditer(text):
        yield text[end : mark.start()]
        yield "${" if mark.group() == "$${" else _reference(mark["inside"])
        end = mark.end()
    yield text[end:]


def _reference(inside: str | None) -> Reference:
    if inside is None:
        raise ValueError("`${` is not closed; write `$${` for a literal `${`")
    if found := _ARGUMENT.fullmatch(inside):
        return ArgumentReference(found[1])
    if found := _OUTPUT.fullmatch(inside):
        return OutputReference(found[1], tuple(found[2].split(".")[1:]))
    if found := _PREVIEW.fullmatch(inside):
        return PreviewReference(found[1])
    raise ValueError(f"{quote(inside)} in `${{…}}` is none of `args.<input>`, `steps.<id>.<path>`, `preview.<path>`")


_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def is_path(text: str) -> bool:
    """Return whether C{text} is a dotted path whose segments are printable and not blank."""
    return bool(text) and all(segment.strip() and segment.isprintable() for segment in text.split("."))


def look_up(value: JSON, path: str) -> JSON:
    """Return the value at C{path} below C{value}, or None if there is none.

    A segment of the path is a key of an object. In an array, it selects the C{value} of the entry with that C{name}, as
    in lists of headers. If no entry has the name, the segment is an index.
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
