"""JSON Schemas (2020-12): checks of schemas, validation of values, and messages for violated constraints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from .json import JSON, canonical, plain

MAX_SCHEMA_BYTES = 16 * 1024
_REFERENCES = ("$ref", "$dynamicRef")
_NAMES = ("$id", "$schema", "$anchor", "$dynamicAnchor")


def schema_problem(schema: Mapping[str, JSON]) -> str | None:
    """Return the reason why a schema cannot be sent to clients, or None if it can.

    References to other documents are refused, because a validator would have to fetch them.
    """
    from jsonschema import Draft202012Validator, SchemaError  # slow to load, and rarely wanted

    try:
        if len(canonical(schema)) > MAX_SCHEMA_BYTES:
            return f"must be at most {MAX_SCHEMA_BYTES} bytes"
        bare: Any = plain(schema)
        Draft202012Validator.check_schema(bare)
    except SchemaError as fault:
        return f"must be a JSON Schema: {fault.message}"
    except (TypeError, ValueError) as fault:
        return f"holds what JSON cannot carry: {fault}"
    return next(_leading_elsewhere(schema), None) or next(_leading_nowhere(schema, bare), None)


def fits(value: JSON, schema: Mapping[str, JSON]) -> bool:
    """Return True if C{value} is valid for a schema in which L{schema_problem} found no fault.

    If the validation cannot be completed, as for a circular schema, return False.
    """
    from jsonschema import Draft202012Validator

    bare: Any = plain(schema)
    try:
        return bool(Draft202012Validator(bare).is_valid(plain(value)))
    except Exception:  # noqa: BLE001 - the checked call is done: a schema must not hide its result
        return False


def _leading_elsewhere(schema: JSON) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in _REFERENCES and not (isinstance(value, str) and value.startswith("#/")):
                yield f"must not refer to {value!r}: only to its own parts, by #/"
            if key in _NAMES and isinstance(value, str):
                yield f"must not hold {key}"
            yield from _leading_elsewhere(value)
    elif isinstance(schema, (list, tuple)):
        for value in schema:
            yield from _leading_elsewhere(value)


def _leading_nowhere(schema: JSON, whole: JSON) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in _REFERENCES and isinstance(value, str) and not _has(whole, value):
                yield f"must not refer to {value!r}: no schema is there"
            yield from _leading_nowhere(value, whole)
    elif isinstance(schema, (list, tuple)):
        for value in schema:
            yield from _leading_nowhere(value, whole)


def _has(whole: JSON, reference: str) -> bool:
    """Return True if C{reference}, C{#} and a JSON pointer (RFC 6901), leads to a schema."""
    there = whole
    for part in unquote(reference).removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(there, Mapping) and name in there:
            there = there[name]
        elif isinstance(there, (list, tuple)) and name.isdecimal() and int(name) < len(there):
            there = there[int(name)]
        else:
            return False
    return isinstance(there, (Mapping, bool))


_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}


def violation(keyword: str, wanted: Any) -> str:
    """Return the message for a violated constraint, as the end of a sentence that begins with the value's name.

    The message contains the constraint and no value that was sent.

    :param keyword: the violated keyword of JSON Schema (2020-12), such as C{maxLength}.
    :param wanted: the keyword's value in the schema.
    """
    says = _SAYS.get(keyword)
    return "is not allowed here" if says is None else says(wanted)


def _types(names: str | list[str]) -> str:
    return " or ".join(_ARTICLES.get(name, f"a {name}") for name in ([names] if isinstance(names, str) else names))


def _alternatives(options: list[Any], otherwise: str) -> str:
    """Return the message for C{anyOf} or C{oneOf}: the list of constants if every option is one, else C{otherwise}."""
    if all(isinstance(each, Mapping) and "const" in each for each in options):
        return _SAYS["enum"]([each["const"] for each in options])
    return otherwise


_SAYS: Mapping[str, Callable[[Any], str]] = {
    "type": lambda names: f"must be {_types(names)}",
    "enum": lambda options: f"must be one of {json.dumps(options, ensure_ascii=False)[1:-1]}",
    "const": lambda only: f"must be {json.dumps(only, ensure_ascii=False)}",
    "minimum": lambda bound: f"must be {bound} or more",
    "maximum": lambda bound: f"must be {bound} or less",
    "exclusiveMinimum": lambda bound: f"must be more than {bound}",
    "exclusiveMaximum": lambda bound: f"must be less than {bound}",
    "multipleOf": lambda step: f"must be a multiple of {step}",
    "minLength": lambda bound: f"must have at least {bound} characters",
    "maxLength": lambda bound: f"must have at most {bound} characters",
    "minItems": lambda bound: f"must have at least {bound} elements",
    "maxItems": lambda bound: f"must have at most {bound} elements",
    "uniqueItems": lambda _: "must have no element twice",
    "minProperties": lambda bound: f"must have at least {bound} members",
    "maxProperties": lambda bound: f"must have at most {bound} members",
    "anyOf": lambda options: _alternatives(options, "fits nothing that is allowed here"),
    "oneOf": lambda options: _alternatives(options, "fits none, or more than one, of what is allowed here"),
    "pattern": lambda pattern: f"must match {pattern}",
    "format": lambda name: f"must be a valid {name}",
}
