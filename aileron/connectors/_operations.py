"""Reads the keys that operations of every kind of connector have."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, TypeVar

from aileron.base.tables import ANY_TEXT, FileTable, quote
from aileron.model.connectors import PRESENTATIONS, READ, WRITE, Operation, Presentation

T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9_]*")
LEAST_SECONDS = 0.001
Identity: TypeAlias = tuple[str, str, str]
"""A connector's name and version, and the hash of its file."""


def read_operations(document: FileTable, read: Callable[[str, FileTable], T]) -> Mapping[str, T]:
    """Read the tables C{[operations.…]} of a file, each by C{read}. Faults are added to the document."""
    table, found = document.optional_table("operations", required=True), {}
    if table is None:
        return {}
    if not table.values:
        document.fault("operations", "must hold at least one operation")
    for name in table.values:
        inside = table.optional_table(name)
        if not NAME.fullmatch(name):
            table.fault(name, "must be named in a-z, 0-9 and '_'")
        if inside is not None:
            found[name] = read(name, inside)
    return found


def read_declared(name: str, table: FileTable, effect: str, *, most_seconds: float, usual_seconds: float) -> Operation:
    """Read the keys that every operation may have. Faults are added to the table."""
    return Operation(
        name,
        effect,
        idempotent=table.flag("idempotent", default=effect == READ),
        description=table.text("description", ANY_TEXT, required=False),
        timeout_seconds=table.number("timeout_seconds", LEAST_SECONDS, most_seconds) or usual_seconds,
        destructive=table.flag("destructive", default=effect == WRITE),
        output_schema=table.output_schema(),
    )


def read_presentation(table: FileTable | None, inputs: Collection[str]) -> Presentation | None:
    """Read the table C{present}, or return None if C{table} is None. Faults are added to the table.

    :param inputs: of the operation.
    """
    if table is None:
        return None
    kind = table.choice("kind", PRESENTATIONS)
    parts = {part: _inputs_shown(table, part, inputs) for part in PRESENTATIONS.get(kind, ()) if part in table.values}
    if kind and not parts:
        table.fault("kind", f"needs at least one of its parts: {', '.join(PRESENTATIONS[kind])}")
    if not kind:
        table.skip(*table.values)  # the kind is unknown, so its parts are too
    table.close()
    return Presentation(kind, parts)


def _inputs_shown(table: FileTable, part: str, inputs: Collection[str]) -> tuple[str, ...]:
    """Return the inputs that a part of a presentation shows. The key names one or an array of them."""
    several = isinstance(table.values[part], list)
    names = table.texts(part) if several else (table.text(part),)
    for name in filter(None, names):
        if name not in inputs:
            table.fault(part, f"names {quote(name)}, which is not an input of the operation")
    return names
