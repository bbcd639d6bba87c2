"""Parses the key C{schema} of an input: its JSON Schema (2020-12), for constraints that the other keys cannot express.

Only a closed set of keywords is allowed, so that this module can check every part. References are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeGuard

from aileron.base.json import JSON, canonical, json_pointer
from aileron.base.tables import FileTable

from ._formats import MOST_CHARACTERS, pattern_problem, size_of

TYPES = ("string", "integer", "number", "boolean", "array", "object")
MAX_SCHEMA_BYTES = 16 * 1024
MAX_LEVELS = 16
_MOST_INSTRUCTIONS = 10_000
"""The maximum number of instructions of all patterns of a schema. Compiling takes time, and the file is not trusted."""

_REPLACED = ("type", "items_type", "enum", "minimum", "maximum", "max_length", "format")


def read_schema(table: FileTable) -> Mapping[str, JSON] | None:
    """Parse the key C{schema} of an input.

    :return: the schema, or None if the key is missing or has faults, which are recorded in C{table}.
    """
    beside = [key for key in _REPLACED if key in table.values]
    for key in beside:
        table.fault(key, "cannot stand beside `schema`: say it inside")
    table.skip(*beside)
    schema = table.object("schema")
    if schema is None:
        return None
    problem = input_schema_problem(schema)
    if problem is not None:
        table.fault("schema", problem)
    return schema if problem is None and not beside else None


def input_schema_problem(schema: Mapping[str, JSON]) -> str | None:
    """Return the reason why an input cannot have this schema, or None if an input can."""
    return next(_problems(schema), None)


def choices(schema: Mapping[str, JSON]) -> Sequence[JSON] | None:
    """Return the only values that the schema allows, from its C{enum} or the C{const} of each alternative.

    Return None if the schema has no such list.
    """
    if _is_list(options := schema.get("enum")):
        return options
    for key in ("oneOf", "anyOf"):
        options = schema.get(key)
        if _is_list(options) and all(isinstance(each, Mapping) and "const" in each for each in options):
            return [each["const"] for each in options if isinstance(each, Mapping)]
    return None


def _problems(schema: Mapping[str, JSON]) -> Iterator[str]:
    if len(canonical(schema)) > MAX_SCHEMA_BYTES:
        yield f"must be at most {MAX_SCHEMA_BYTES} bytes"
    if schema.get("type") not in TYPES:
        yield f"must say its own `type`: one of {', '.join(TYPES)}"
    if "default" in schema:
        yield "must not hold `default`: write it beside `schema`"
    if _too_many_patterns(schema):
        yield "has patterns that are too large together"
    yield from _faults(schema, "", 1)


def _faults(schema: JSON, pointer: str, level: int) -> Iterator[str]:
    """Yield the faults of the schema at C{pointer} and of all schemas inside it."""
    at = f"at {pointer} " if pointer else ""
    if not isinstance(schema, Mapping):
        yield f"{at}must be a table"
    elif level > MAX_LEVELS:
        yield f"{at}is nested too deeply: {MAX_LEVELS} levels are allowed"
    else:
        yield from (at + problem for problem in _own_faults(schema))
        for keys, each in _inside(schema):
            yield from _faults(each, json_pointer(pointer, *keys), level + 1)


def _own_faults(schema: Mapping[str, JSON]) -> Iterator[str]:
    for key, value in schema.items():
        if key not in _KEYWORDS:
            yield f"must not hold `{key}`; what may stand there is {', '.join(_KEYWORDS)}"
            return
        holds, phrase = _KEYWORDS[key]
        if not holds(value):
            yield f"has a `{key}` that must be {phrase}"
            return
    if "enumNames" in schema and "enum" not in schema:
        yield "must not hold `enumNames` without `enum`"
    if isinstance(pattern := schema.get("pattern"), str):
        most: Any = schema.get("maxLength", MOST_CHARACTERS)
        if problem := pattern_problem(pattern, most):
            yield problem


def _inside(schema: Mapping[str, JSON]) -> Iterator[tuple[tuple[str | int, ...], JSON]]:
    """Yield the schemas directly inside this one, each with the path that leads to it."""
    if isinstance(members := schema.get("properties"), Mapping):
        yield from ((("properties", name), each) for name, each in members.items())
    if "items" in schema:
        yield ("items",), schema["items"]
    for key in ("oneOf", "anyOf"):
        if _is_list(options := schema.get(key)):
            yield from (((key, index), each) for index, each in enumerate(options))


def _patterns(schema: JSON) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        for _, each in _inside(schema):
            yield from _patterns(each)


def _too_many_patterns(schema: JSON) -> bool:
    try:
        return any(size > _MOST_INSTRUCTIONS for size in accumulate(map(size_of, _patterns(schema))))
    except ValueError:  # not a valid pattern: reported with its place
        return False


def _is_list(value: JSON) -> TypeGuard[Sequence[JSON]]:
    return isinstance(value, (list, tuple))


def _is_text(value: JSON) -> bool:
    return isinstance(value, str)


def _are_texts(value: JSON) -> bool:
    return _is_list(value) and all(map(_is_text, value))


def _are_names(value: JSON) -> bool:
    return _is_list(value) and _are_texts(value) and len(frozenset(value)) == len(value)


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_step(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_Word = tuple[Callable[[JSON], bool], str]
_TEXT: _Word = (_is_text, "a text")
_COUNT: _Word = (_is_count, "a whole number of 0 or more")
_NUMBER: _Word = (_is_number, "a number")
_YES_OR_NO: _Word = (lambda value: isinstance(value, bool), "true or false")
_SEVERAL: _Word = (lambda value: _is_list(value) and bool(value), "an array that is not empty")
_TABLE: _Word = (lambda value: isinstance(value, Mapping), "a table")

_KEYWORDS: Mapping[str, _Word] = {
    "type": (lambda value: value in TYPES, f"one of {', '.join(TYPES)}"),
    "title": _TEXT,
    "description": _TEXT,
    "examples": (_is_list, "an array"),
    "enum": _SEVERAL,
    "const": (lambda _: True, "a value"),
    "enumNames": (_are_texts, "an array of texts"),
    "properties": _TABLE,
    "required": (_are_names, "an array of names, none of them twice"),
    "additionalProperties": _YES_OR_NO,
    "items": _TABLE,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": _YES_OR_NO,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": (_is_step, "a number of more than 0"),
    "oneOf": _SEVERAL,
    "anyOf": _SEVERAL,
}
"""The keywords that a schema may use at every level. Schemas inside are checked separately."""
