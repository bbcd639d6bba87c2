"""Parses C{[[inputs]]}, the inputs of an action, and checks which inputs a form can request from a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from aileron.base.json import JSON
from aileron.base.tables import FileTable, TextRule, repeated
from aileron.model.actions import Input

from ._arguments import value_problems
from ._checks import Work
from ._formats import FORMATS
from ._own_schema import TYPES, read_schema
from ._tool import DEFAULT_MAX_LENGTH, property_schema

_ALWAYS = frozenset({"type", "title", "description", "default"})
_KNOWN: Mapping[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "format", "pattern", "enum", "enumNames", "oneOf", "anyOf"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
_SEVERAL = (
    "of arrays a form can ask only for several of a choice: `schema` with `items` of "
    '`type = "string"` and `enum`, or of `anyOf`, each a `const` and a `title`'
)


def asking_problem(schema: Mapping[str, Any]) -> str | None:
    """Return the reason why no form can request an input of this schema from a person, or None if a form can."""
    kind = schema["type"]
    if kind not in _KNOWN:
        return f"no form can ask for an {kind}"
    for key in schema:
        if key not in _ALWAYS | _KNOWN[kind]:
            return f"no form can say `{key}` of a value of type {kind}"
    if kind == "array":
        return None if _is_several(schema["items"]) else _SEVERAL
    return _text_problem(schema)


def _text_problem(schema: Mapping[str, Any]) -> str | None:
    if "format" in schema and schema["format"] not in FORMATS:
        return f"no form can ask for another `format` than {', '.join(FORMATS)}"
    found = [key for key in ("enum", "oneOf", "anyOf") if key in schema]
    if len(found) > 1:
        return f"no form can have both `{found[0]}` and `{found[1]}`"
    if "enum" in schema and not _are_texts(schema["enum"]):
        return "a form can offer only texts as `enum`"
    for key in ("oneOf", "anyOf"):
        if key in schema and not _are_titled(schema[key]):
            return f"a form can offer `{key}` only where each is a `const` and a `title`, both texts"
    return None


def _is_several(items: Mapping[str, Any]) -> bool:
    if items.keys() == {"type", "enum"}:
        return items["type"] == "string" and _are_texts(items["enum"])
    return items.keys() == {"anyOf"} and _are_titled(items["anyOf"])


def _are_titled(options: Sequence[Any]) -> bool:
    return all(each.keys() == {"const", "title"} and _are_texts(each.values()) for each in options)


def _are_texts(values: Any) -> bool:
    return all(isinstance(each, str) for each in values)


MAX_INPUTS = 64
MAX_CHOICES = 200
MAX_LENGTH = 1_000_000
MOST_STEPS_OF_A_FILE = 20_000
"""The maximum number of steps to check the default values of a file. Files are read before the operator trusts them."""

_NAME = TextRule.shape(r"[a-z][a-z0-9_]{0,63}", "must match ^[a-z][a-z0-9_]*$, with at most 64 characters")
_TYPE = TextRule.choice(TYPES)
_ITEMS_TYPE = TextRule.choice([name for name in TYPES if name != "array"])
_FORMAT = TextRule.choice(FORMATS)
_ONLY_FOR: Mapping[str, tuple[str, ...]] = {
    "items_type": ("array",),
    "multiline": ("string",),
    "format": ("string",),
    "enum": ("string", "integer", "number"),
    "minimum": ("integer", "number"),
    "maximum": ("integer", "number"),
    "max_length": ("string", "array"),
}


def read_inputs(tables: Sequence[FileTable]) -> tuple[Input, ...]:
    """Parse the inputs of an action, in order. Faults are recorded in C{tables}."""
    work = Work(MOST_STEPS_OF_A_FILE)
    inputs = tuple(_read_input(table, work) for table in tables)
    for index in repeated([one.name for one in inputs]):
        tables[index].fault("name", f"{inputs[index].name!r} is declared twice")
    return inputs


def _read_input(table: FileTable, work: Work) -> Input:
    default = table.json("default")
    has_default = default is not None
    one = Input(
        name=table.text("name", _NAME),
        type="",
        description=table.text("description"),
        required=table.flag("required", default=not has_default),
        label=table.text("label", required=False) or None,
        multiline=table.flag("multiline", default=False),
        default=default,
        has_default=has_default,
        ask=table.flag("ask", default=False),
    )
    one = _by_schema(table, one) if "schema" in table.values else _by_keys(table, one)
    table.close()
    if one.type in TYPES:
        _check_keys_fit(table, one.type)
        _check_values(table, one, work)
        _check_asking(table, one)
    return one


def _by_schema(table: FileTable, one: Input) -> Input:
    schema = read_schema(table)
    return one if schema is None else evolve(one, type=str(schema["type"]), schema=schema)


def _by_keys(table: FileTable, one: Input) -> Input:
    kind = table.text("type", _TYPE)
    return evolve(
        one,
        type=kind,
        items_type=table.text("items_type", _ITEMS_TYPE, required=False) or None,
        enum=_read_enum(table),
        minimum=table.number("minimum"),
        maximum=table.number("maximum"),
        max_length=table.integer("max_length", 1, MAX_LENGTH) or (DEFAULT_MAX_LENGTH if kind == "string" else None),
        format=table.text("format", _FORMAT, required=False) or None,
    )


def _read_enum(table: FileTable) -> tuple[JSON, ...] | None:
    values = table.json("enum")
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= MAX_CHOICES:
        table.fault("enum", f"must be an array of 1 to {MAX_CHOICES} values")
        return None
    if any(value in values[:index] for index, value in enumerate(values)):
        table.fault("enum", "has a value twice")
    return tuple(values)


def _check_keys_fit(table: FileTable, kind: str) -> None:
    for key, kinds in _ONLY_FOR.items():
        if key in table.values and kind not in kinds:
            table.fault(key, f"is for inputs of type {' or '.join(kinds)}")


def _check_asking(table: FileTable, one: Input) -> None:
    problem = asking_problem(property_schema(one)) if one.ask else None
    if problem is not None:
        table.fault("ask", f"cannot be: {problem}")


def _check_values(table: FileTable, one: Input, work: Work) -> None:
    """Check the values in the declaration itself, such as its default, against the declaration. Record faults."""
    if one.minimum is not None and one.maximum is not None and one.minimum > one.maximum:
        table.fault("minimum", "is greater than `maximum`")
    if one.has_default and table.flag("required", default=False):
        table.fault("required", "cannot be true beside a `default`")
    for key, values in (("enum", one.enum or ()), ("default", (one.default,) if one.has_default else ())):
        problems = [message for value in values for message in value_problems(one, value, work)]
        if problems:
            table.fault(key, f"has a value that {problems[0]}")
