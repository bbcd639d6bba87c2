"""Inputs as JSON Schema (2020-12), and what checks arguments by it, made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import field, frozen
from jsonschema.protocols import Validator

from aileron.values import JSON, Action, Input, plain, plainly

from ._schema_parts import choices, moved
from ._validators import TooMuchWork, bounded, validator

DEFAULT_MAX_LENGTH = 65_536
_CONSTRAINTS = ("minimum", "maximum", "format")


def input_schema(inputs: Sequence[Input]) -> Mapping[str, JSON]:
    """The schema of an action's arguments, as MCP hosts and the API's document show it."""
    return {
        "type": "object",
        "properties": {one.name: moved(property_schema(one), f"/properties/{one.name}") for one in inputs},
        "required": [one.name for one in inputs if one.required],
        "additionalProperties": False,
    }


def property_schema(one: Input) -> dict[str, JSON]:
    """The schema of one argument; arrays always say what they hold, since some hosts refuse them otherwise."""
    if one.schema is not None:
        return _as_written(one, one.schema)
    schema: dict[str, JSON] = {"type": one.type, **_words(one)}
    if one.type == "array":
        schema["items"] = {"type": one.items_type} if one.items_type else {}
    if one.max_length is not None:
        schema["maxItems" if one.type == "array" else "maxLength"] = one.max_length
    if one.enum is not None:
        schema["enum"] = list(one.enum)
    if one.has_default:
        schema["default"] = one.default
    return schema | {key: getattr(one, key) for key in _CONSTRAINTS if getattr(one, key) is not None}


def _as_written(one: Input, schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema of the file, and of the rest what it does not say itself."""
    added = _words(one)
    if one.type == "array":
        added["items"] = {}
    if one.type == "string" and choices(schema) is None and "const" not in schema:
        added["maxLength"] = DEFAULT_MAX_LENGTH
    if one.has_default:
        added["default"] = one.default
    return {**added, **schema}


def _words(one: Input) -> dict[str, JSON]:
    words: dict[str, JSON] = {"description": one.description}
    return words if one.label is None else {**words, "title": one.label}


@frozen
class ArgumentChecks:
    """What checks an action's arguments."""

    _plainly: Callable[[JSON], bool]
    validator: Validator

    def plainly_right(self, arguments: JSON) -> bool:
        """Yes only where C{validator} would find nothing, and much sooner."""
        try:
            with bounded():
                return self._plainly(arguments)
        except TooMuchWork:
            return False


def argument_checks(action: Action) -> ArgumentChecks:
    """The checks of an action's arguments, made once for as long as it is in use."""
    return _made(_Known(action.digest, action.input_schema))


@frozen
class _Known:
    """A schema that the digest of its file stands for."""

    digest: str
    schema: Mapping[str, JSON] = field(eq=False)


@lru_cache(maxsize=512)
def _made(known: _Known) -> ArgumentChecks:
    schema: Any = plain(known.schema)
    whole: Any = validator(schema)
    return ArgumentChecks(plainly(schema, lambda member: whole.evolve(schema=member)), whole)
