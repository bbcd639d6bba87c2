"""JSON Schemas (2020-12) that an action or a connector declares of what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
    return next(_leading_elsewhere(schema), None)


def fits(value: JSON, schema: Mapping[str, JSON]) -> bool:
    """Whether C{value} is as a schema says in which L{schema_problem} found nothing."""
    from jsonschema import Draft202012Validator

    bare: Any = plain(schema)
    return bool(Draft202012Validator(bare).is_valid(plain(value)))


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
