"""What a JSON Schema (2020-12) is made of: its parts, the choices that it gives, where it refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeGuard

from aileron.values import JSON, part

_REFERENCES = ("$ref", "$dynamicRef")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_DATA = ("const", "enum", "default", "examples", "dependentRequired")
_OF_THE_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


def parts(schema: JSON) -> Iterator[Mapping[str, JSON]]:
    """The schema and every schema in it; what it holds of data is none, whatever it looks like."""
    if isinstance(schema, Mapping):
        yield schema
        for key, value in schema.items():
            for each in _within(key, value):
                yield from parts(each)
    elif _is_list(schema):
        for each in schema:
            yield from parts(each)


def choices(schema: Mapping[str, JSON]) -> Sequence[JSON] | None:
    """The values of which one is to be chosen, as C{enum} or as C{const} of each alternative; else L{None}."""
    if _is_list(options := schema.get("enum")):
        return options
    for key in ("oneOf", "anyOf"):
        options = schema.get(key)
        if _is_list(options) and all(isinstance(each, Mapping) and "const" in each for each in options):
            return [each["const"] for each in options if isinstance(each, Mapping)]
    return None


def moved(schema: JSON, to: str) -> JSON:
    """The schema as a part of a larger one: what it says of its own parts says where they are then.

    :param to: the JSON pointer (RFC 6901) at which it will stand.
    """
    if isinstance(schema, Mapping):
        return {key: _moved_value(key, value, to) for key, value in schema.items()}
    if _is_list(schema):
        return [moved(each, to) for each in schema]
    return schema


def leads_in_a_circle(schema: Mapping[str, JSON]) -> bool:
    """Whether some part, by what it refers to, asks of a value what it is asking already."""
    references = {each for one in parts(schema) for each in _referred(one)}
    try:
        TopologicalSorter({each: set(_asked(part(schema, each))) for each in references}).prepare()
    except CycleError:
        return True
    return False


def _within(key: str, value: JSON) -> Iterator[JSON]:
    if key in _BY_NAME and isinstance(value, Mapping):
        yield from value.values()
    elif key not in _DATA:
        yield value


def _moved_value(key: str, value: JSON, to: str) -> JSON:
    if key in _REFERENCES and isinstance(value, str):
        return f"#{to}{value[1:]}"
    if key in _BY_NAME and isinstance(value, Mapping):
        return {name: moved(each, to) for name, each in value.items()}
    return value if key in _DATA else moved(value, to)


def _asked(schema: JSON) -> Iterator[str]:
    """What a schema refers to for the very value that it is asked about."""
    if isinstance(schema, Mapping):
        yield from _referred(schema)
        for key in _OF_THE_SAME_VALUE:
            for each in _within(key, schema.get(key)):
                yield from _asked(each)
    elif _is_list(schema):
        for each in schema:
            yield from _asked(each)


def _referred(schema: Mapping[str, JSON]) -> Iterator[str]:
    for key in _REFERENCES:
        if isinstance(reference := schema.get(key), str):
            yield reference


def _is_list(value: JSON) -> TypeGuard[Sequence[JSON]]:
    return isinstance(value, (list, tuple))
