"""JSON Schemas (2020-12) that an action or a connector declares of what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from ._json import JSON, canonical, plain

MAX_SCHEMA_BYTES = 16 * 1024
_REFERENCES = ("$ref", "$dynamicRef")
_NAMES = ("$id", "$schema", "$anchor", "$dynamicAnchor")


def schema_problem(schema: Mapping[str, JSON]) -> str | None:
    """Why this is no schema that a client could be handed, or L{None}.

    Nothing in it may lead elsewhere: whoever checks by it would have to fetch that.
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
    """Whether C{value} is as a schema says in which L{schema_problem} found nothing.

    One that cannot be followed to its end, as where it leads in a circle, is fitted by nothing.
    """
    from jsonschema import Draft202012Validator

    bare: Any = plain(schema)
    try:
        return bool(Draft202012Validator(bare).is_valid(plain(value)))
    except Exception:  # noqa: BLE001 - what is checked was done already: no schema may keep that from being told
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
    """Whether a schema lies where C{reference}, C{#} and a JSON pointer (RFC 6901), leads."""
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
