"""C{[[inputs]]}: what an action takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from aileron.values import JSON, Input

from ._arguments import value_problems
from ._asking import asking_problem
from ._checks import Work
from ._formats import FORMATS
from ._json_schema import DEFAULT_MAX_LENGTH, property_schema
from ._own_schema import TYPES, read_schema
from ._table import Rule, Table, repeated

MAX_INPUTS = 64
MAX_CHOICES = 200
MAX_LENGTH = 1_000_000
MOST_STEPS_OF_A_FILE = 20_000
"""What checking the values that a file declares may take: files are read before anybody trusts them."""

_NAME = Rule.shape(r"[a-z][a-z0-9_]{0,63}", "must match ^[a-z][a-z0-9_]*$, with at most 64 characters")
_TYPE = Rule.choice(TYPES)
_ITEMS_TYPE = Rule.choice([name for name in TYPES if name != "array"])
_FORMAT = Rule.choice(FORMATS)
_ONLY_FOR: Mapping[str, tuple[str, ...]] = {
    "items_type": ("array",),
    "multiline": ("string",),
    "format": ("string",),
    "enum": ("string", "integer", "number"),
    "minimum": ("integer", "number"),
    "maximum": ("integer", "number"),
    "max_length": ("string", "array"),
}
_KEYS = ("name", "type", "description", "required", "label", "default", "schema", "ask", *_ONLY_FOR)


def read_inputs(tables: Sequence[Table]) -> tuple[Input, ...]:
    """The inputs, in order; what is wrong with them is kept with their tables."""
    work = Work(MOST_STEPS_OF_A_FILE)
    inputs = tuple(_read_input(table, work) for table in tables)
    for index in repeated([one.name for one in inputs]):
        tables[index].fault("name", f"the input `{inputs[index].name}` is declared twice")
    return inputs


def _read_input(table: Table, work: Work) -> Input:
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
    table.close(_KEYS)
    if one.type in TYPES:
        _check_keys_fit(table, one.type)
        _check_values(table, one, work)
        _check_asking(table, one)
    return one


def _by_schema(table: Table, one: Input) -> Input:
    schema = read_schema(table)
    return one if schema is None else evolve(one, type=str(schema["type"]), schema=schema)


def _by_keys(table: Table, one: Input) -> Input:
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


def _read_enum(table: Table) -> tuple[JSON, ...] | None:
    values = table.json("enum")
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= MAX_CHOICES:
        table.fault("enum", f"`enum` must be an array of 1 to {MAX_CHOICES} values")
        return None
    if any(value in values[:index] for index, value in enumerate(values)):
        table.fault("enum", "`enum` has a value twice")
    return tuple(values)


def _check_keys_fit(table: Table, kind: str) -> None:
    for key, kinds in _ONLY_FOR.items():
        if key in table.values and kind not in kinds:
            table.fault(key, f"`{key}` is for inputs of type {' or '.join(kinds)}")


def _check_asking(table: Table, one: Input) -> None:
    problem = asking_problem(property_schema(one)) if one.ask else None
    if problem is not None:
        table.fault("ask", f"`ask`: {problem}")


def _check_values(table: Table, one: Input, work: Work) -> None:
    """What the declaration itself holds must be what it allows."""
    if one.minimum is not None and one.maximum is not None and one.minimum > one.maximum:
        table.fault("minimum", "`minimum` is greater than `maximum`")
    if one.has_default and table.flag("required", default=False):
        table.fault("required", "an input with a `default` cannot be required")
    for key, values in (("enum", one.enum or ()), ("default", (one.default,) if one.has_default else ())):
        problems = [message for value in values for message in value_problems(one, value, work)]
        if problems:
            table.fault(key, f"`{key}`: a value {problems[0]}")
