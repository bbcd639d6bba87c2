"""Templates in connector files: C{${in.<name>}}, C{${effect.key}} and C{${effect.uuid}} in texts, tables and arrays.

A table C{{ each = "${in.to}", as = … }} makes an array of one C{as} for each element of the input, which is
C{${item}}.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeGuard

from attrs import evolve, field, frozen

from aileron.base.json import JSON, canonical, strings_in, timestamp
from aileron.base.tables import FileTable
from aileron.model.errors import InvalidRequest

Template = JSON
"""A value of a connector file whose strings may hold references."""

REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_ITEM = "item"
_EACH = frozenset({"each", "as"})
_LONE_INPUT = re.compile(r"\$\{in\.[A-Za-z_][A-Za-z0-9_-]*\}")
_KNOWN = re.compile(r"in\.[A-Za-z_][A-Za-z0-9_-]*|effect\.key|effect\.uuid")
_NAMESPACE = uuid.UUID("3f6a1b1e-6d0c-5e57-9a0b-0d3a5f6c7e21")


class Omitted:
    """The type of L{OMITTED}, which stands for the value of a reference to an input that was not given."""


OMITTED = Omitted()


@frozen
class ReferenceScope:
    """The values of the references in one request.

    :ivar effect_key: created by the daemon for this run and step.
    :ivar since: a time before the effect, for a request that searches for the effect; else None.
    :ivar item: the current element, while the C{as} of an C{each} is rendered.
    """

    inputs: Mapping[str, JSON]
    effect_key: str = field()
    since: datetime | None = None
    item: JSON | Omitted = OMITTED

    def value(self, reference: str) -> JSON | Omitted:
        """Return the value of C{reference}, or L{OMITTED} if there is none."""
        if reference == _ITEM:
            return self.item
        if reference == "effect.key":
            return self.effect_key
        if reference == "effect.uuid":
            return str(uuid.uuid5(_NAMESPACE, self.effect_key))
        if reference.startswith("effect.since") and self.since is not None:
            return int(self.since.timestamp()) if reference.endswith("_unix") else timestamp(self.since)
        return self.inputs.get(reference.removeprefix("in."), OMITTED)


def references(template: Template) -> frozenset[str]:
    """Return every C{${in.NAME}} reference that occurs in C{template}."""
    return frozenset(name for text in strings_in(template) for name in REFERENCE.findall(text))


def inputs_of(*templates: Template) -> frozenset[str]:
    """Return the names of the inputs that C{templates} refer to."""
    found = (name for each in templates for name in references(each))
    return frozenset(name.removeprefix("in.") for name in found if name.startswith("in."))


def check_references(table: FileTable, key: str, template: Template, more: Collection[str] = ()) -> None:
    """Add each fault of C{template} to the key C{key} of the table."""
    for fault in faults(template, more):
        table.fault(key, fault)


def faults(template: Template, more: Collection[str] = ()) -> Iterator[str]:
    """Yield the faults of the references in C{template}.

    :param more: further known references.
    """
    if _is_each(template):
        yield from _each_faults(template)
    elif isinstance(template, str):
        yield from _text_faults(template, more)
    elif isinstance(template, Mapping | Sequence):
        for part in template.values() if isinstance(template, Mapping) else template:
            yield from faults(part, more)


def _text_faults(text: str, more: Collection[str]) -> Iterator[str]:
    for name in REFERENCE.findall(text):
        if not _KNOWN.fullmatch(name) and name not in more:
            yield f"unknown reference ${{{name}}}: only in.<name>, effect.key and effect.uuid can be referred to"
    if "${" in REFERENCE.sub("", text):
        yield f'unclosed `${{` in "{text}"'


def _is_each(template: Template) -> TypeGuard[Mapping[str, Template]]:
    return isinstance(template, Mapping) and template.keys() == _EACH


def _each_faults(template: Mapping[str, Template]) -> Iterator[str]:
    """Yield the faults of a table C{each}, which renders C{as} for each element of an input.

    C{as} may refer only to the element. With other inputs, the array could become much larger than the inputs.
    """
    if not isinstance(template["each"], str) or not _LONE_INPUT.fullmatch(template["each"]):
        yield "`each` must be exactly one ${in.<name>}"
    for name in sorted(references(template["as"]) - {_ITEM}):
        yield f"`as` can refer to ${{item}} only, and not to ${{{name}}}"
    yield from faults(template["as"], {_ITEM, *references(template["as"])})


def render(template: Template, scope: ReferenceScope) -> JSON | Omitted:
    """Render C{template}: a lone reference retains its type, and an omitted one drops its key or element.

    :raises InvalidRequest: if a longer text refers to an omitted input, or to one that is no text, number or boolean.
    """
    if isinstance(template, str):
        lone = REFERENCE.fullmatch(template)
        return scope.value(lone[1]) if lone else text(template, scope)
    if _is_each(template):
        return _each(template, scope)
    if isinstance(template, Mapping):
        rendered = ((key, render(value, scope)) for key, value in template.items())
        return {key: value for key, value in rendered if not isinstance(value, Omitted)}
    if isinstance(template, Sequence):
        elements = (render(value, scope) for value in template)
        return [value for value in elements if not isinstance(value, Omitted)]
    return template


def _each(template: Mapping[str, Template], scope: ReferenceScope) -> JSON | Omitted:
    items = render(template["each"], scope)
    if items is None or isinstance(items, Omitted):
        return items
    if not isinstance(items, Sequence) or isinstance(items, str):
        (reference,) = references(template["each"])
        raise problem(reference.removeprefix("in."), "must be an array")
    return [each for item in items if not isinstance(each := render(template["as"], evolve(scope, item=item)), Omitted)]


def text(template: str, scope: ReferenceScope) -> str:
    """Render C{template} as a text, with each reference as text.

    :raises InvalidRequest: if C{template} refers to an omitted input, or to one that is no text, number or boolean.
    """
    return REFERENCE.sub(lambda found: scalar(scope.value(found[1]), found[1]), template)


def scalar(value: JSON | Omitted, reference: str) -> str:
    """Return a text unchanged, or a number or boolean as JSON.

    :raises InvalidRequest: if the value has another type, or was omitted.
    """
    name = reference.removeprefix("in.")
    if isinstance(value, Omitted):
        raise problem(name, "is needed")
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return _number(value, name)
    raise problem(name, "must be a text, a number or a boolean here")


def _number(value: float, name: str) -> str:
    try:
        return canonical(value).decode("ascii")
    except ValueError as error:
        raise problem(name, "is a number that JSON cannot carry exactly") from error


def problem(name: str, what: str) -> InvalidRequest:
    """Return the error which says that C{what} is wrong with an operation's input C{name}."""
    message = f"The input {name!r} {what}."
    return InvalidRequest.listing(message, (f"/inputs/{name}", message))
