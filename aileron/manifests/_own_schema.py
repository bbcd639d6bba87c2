"""The key C{schema} of an input: its JSON Schema (2020-12), for what the other keys cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from aileron.values import JSON, schema_problem

from ._faults import brief
from ._patterns import compiled
from ._schema_parts import leads_in_a_circle, parts
from ._table import Table

_REPLACED = ("type", "items_type", "enum", "minimum", "maximum", "max_length", "format")
_UNBOUNDED = ("patternProperties", "unevaluatedProperties", "unevaluatedItems")


def read_schema(table: Table, types: tuple[str, ...]) -> Mapping[str, JSON] | None:
    """The schema, or L{None}; what is wrong with it, or with keys beside it, is kept with the table.

    :param types: of which its own C{type} must be one.
    """
    beside = [key for key in _REPLACED if key in table.values]
    for key in beside:
        table.fault(key, f"`{key}` cannot stand beside `schema`: say it inside")
    schema = table.json("schema")
    if schema is None:
        return None
    if not isinstance(schema, Mapping):
        table.fault("schema", "`schema` must be a table")
        return None
    problem = schema_problem(schema) or next(_problems(schema, types), None)
    if problem is not None:
        table.fault("schema", f"`schema` {brief(problem)}")
    return schema if problem is None and not beside else None


def _problems(schema: Mapping[str, JSON], types: tuple[str, ...]) -> Iterator[str]:
    if schema.get("type") not in types:
        yield f"must say its own `type`: one of {', '.join(types)}"
    if "default" in schema:
        yield "must not hold `default`: write it beside `schema`"
    yield from chain.from_iterable(map(_costly, parts(schema)))
    if leads_in_a_circle(schema):
        yield "refers to itself in a circle"


def _costly(part: Mapping[str, JSON]) -> Iterator[str]:
    """What of this part could not be checked in bounded time: agents choose the values."""
    for keyword in _UNBOUNDED:
        if keyword in part:
            yield f"must not hold `{keyword}`, which takes too long to check"
    if isinstance(pattern := part.get("pattern"), str):
        try:
            compiled(pattern)
        except ValueError as error:
            yield f"has the `pattern` {pattern!r}, which is none of RE2's: {error}"
