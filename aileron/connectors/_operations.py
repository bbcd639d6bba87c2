"""Reads the keys that operations of every kind of connector have."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, TypeVar

from attrs import evolve

from aileron.base.tables import ANY_TEXT, FileTable, quote
from aileron.model.connectors import PRESENTATIONS, READ, WRITE, Operation, Presentation
from aileron.model.titles import MOST_TITLE, REFERENCE, inputs_of_title

T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9_]*")
LEAST_SECONDS = 0.001
HEADLINE = "headline"
Identity: TypeAlias = tuple[str, str, str]
"""A connector's name and version, and the hash of its file."""


def read_operations(document: FileTable, read: Callable[[str, FileTable], T]) -> Mapping[str, T]:
    """Read the tables C{[operations.…]} of a file, each by C{read}. Faults are added to the document.

    A missing or empty table is a fault, and its result is an empty mapping.
    """
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


def read_declared(
    name: str,
    table: FileTable,
    effect: str,
    *,
    most_seconds: float,
    usual_seconds: float,
    inputs: Collection[str] | None = None,
) -> Operation:
    """Read the keys that every operation may have, and return the operation. Faults are added to the table.

    :param effect: C{read} or C{write}.
    :param most_seconds: the largest permitted timeout.
    :param usual_seconds: the timeout if the file declares none.
    :param inputs: the operation's inputs, which C{present} may name, or None if the file does not declare them.
    """
    destructive = table.flag("destructive", default=effect == WRITE)
    presentation = read_presentation(table.optional_table("present"), inputs)
    removes = destructive and presentation is not None and presentation.kind == "delete"
    return Operation(
        name,
        effect,
        idempotent=table.flag("idempotent", default=effect == READ),
        description=table.text("description", ANY_TEXT, required=False),
        timeout_seconds=table.number("timeout_seconds", LEAST_SECONDS, most_seconds) or usual_seconds,
        destructive=destructive,
        output_schema=table.output_schema(),
        presentation=presentation,
        irreversible=_read_irreversible(table, destructive=destructive, usual=removes),
    )


def _read_irreversible(table: FileTable, *, destructive: bool, usual: bool) -> bool:
    irreversible = table.flag("irreversible", default=usual)
    if irreversible and not destructive:
        table.fault("irreversible", "must not be true of an operation that is not destructive")
    return irreversible


def read_presentation(table: FileTable | None, inputs: Collection[str] | None) -> Presentation | None:
    """Read the table C{present}, a hint for showing the inputs to a person, or return None if C{table} is None.

    Faults are added to the table.

    :param inputs: the operation's inputs, or None if the file does not declare them.
    """
    if table is None:
        return None
    kind = table.choice("kind", PRESENTATIONS)
    parts = {part: _inputs_shown(table, part, inputs) for part in PRESENTATIONS.get(kind, ()) if part in table.values}
    titles = _read_titles(table, inputs) if HEADLINE in table.values and kind else ()
    if kind and not parts and HEADLINE not in table.values:
        table.fault("kind", f"needs a {HEADLINE} or at least one of its parts: {', '.join(PRESENTATIONS[kind])}")
    if not kind:
        table.skip(*table.values)  # the kind is unknown, so its parts are too
    table.close()
    return Presentation(kind, parts, titles)


def present(operation: Operation, kind: str, *titles: str) -> Operation:
    """Return C{operation} with a hint for showing its inputs to a person: of this kind, and with these titles.

    If the operation's file declares a presentation, only missing titles are added.
    """
    given = operation.presentation
    if given is not None:
        return operation if given.titles else evolve(operation, presentation=evolve(given, titles=titles))
    return evolve(operation, presentation=Presentation(kind, titles=titles))


def _read_titles(table: FileTable, inputs: Collection[str] | None) -> tuple[str, ...]:
    """Return the templates of titles. The key holds one, or an array of them. Faults are added to the table."""
    titles = table.texts(HEADLINE) if isinstance(table.values[HEADLINE], list) else (table.text(HEADLINE),)
    for each in titles:
        named = inputs_of_title(each)
        if any(name not in (named if inputs is None else inputs) for name in named):
            table.fault(HEADLINE, f"names an input that is not one of the operation: {quote(each)}")
        if len(each) > MOST_TITLE or not each.isprintable():
            table.fault(HEADLINE, f"must be one line of at most {MOST_TITLE} characters")
        if "${" in REFERENCE.sub("", each):
            table.fault(HEADLINE, f"can refer to inputs only, as ${{in.name}}: {quote(each)}")
    return titles


def _inputs_shown(table: FileTable, part: str, inputs: Collection[str] | None) -> tuple[str, ...]:
    """Return the inputs that a part of a presentation shows. The key names one or an array of them.

    An input that the operation does not have is added to the table as a fault.
    """
    several = isinstance(table.values[part], list)
    names = table.texts(part) if several else (table.text(part),)
    for name in filter(None, names):
        if inputs is not None and name not in inputs:
            table.fault(part, f"names {quote(name)}, which is not an input of the operation")
    return names
