"""Templates, C{${args.x}}, C{${steps.id.path}}, C{${preview.path}} and C{$${} for a literal C{${}; and dotted paths."""

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
    """C{${args.<name>}}."""

    name: str


@frozen
class OutputReference:
    """C{${steps.<step>.<path>}}."""

    step: str
    path: tuple[str, ...]


@frozen
class PreviewReference:
    """C{${preview.<path>}}, the path dotted."""

    path: str


Reference: TypeAlias = ArgumentReference | OutputReference | PreviewReference
Part: TypeAlias = str | Reference


@lru_cache(4096)
def template_parts(text: str) -> tuple[Part, ...]:
    """C{text} as literal pieces and references, in order; no piece is empty.

    :raises ValueError: something in C{${…}} is no reference.
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
    """Tell whether C{text} is one: segments between dots, none of them empty."""
    return bool(text) and all(segment.strip() and segment.isprintable() for segment in text.split("."))


def look_up(value: JSON, path: str) -> JSON:
    """Find where C{path} leads from C{value}, or L{None}: nowhere, or to null.

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
