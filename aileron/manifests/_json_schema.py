"""Inputs as JSON Schema (2020-12), and validators made of it once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import field, frozen
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from aileron.values import JSON, Action, Input, plain, plainly

from ._formats import checker

_CONSTRAINTS = ("minimum", "maximum", "format")


def input_schema(inputs: Sequence[Input]) -> Mapping[str, JSON]:
    """The schema of an action's arguments, as MCP hosts and the API's document show it."""
    return {
        "type": "object",
        "properties": {one.name: property_schema(one) for one in inputs},
        "required": [one.name for one in inputs if one.required],
        "additionalProperties": False,
    }


def property_schema(one: Input) -> dict[str, JSON]:
    """The schema of one argument; arrays always say what they hold, since some hosts refuse them otherwise."""
    schema: dict[str, JSON] = {"type": one.type, "description": one.description}
    if one.label is not None:
        schema["title"] = one.label
    if one.type == "array":
        schema["items"] = {"type": one.items_type} if one.items_type else {}
    if one.max_length is not None:
        schema["maxItems" if one.type == "array" else "maxLength"] = one.max_length
    if one.enum is not None:
        schema["enum"] = list(one.enum)
    if one.has_default:
        schema["default"] = one.default
    return schema | {key: getattr(one, key) for key in _CONSTRAINTS if getattr(one, key) is not None}


def validator(schema: Mapping[str, JSON]) -> Validator:
    """A validator of C{schema} that checks formats."""
    made: Validator = _Validator(plain(schema), format_checker=checker())
    return made


@frozen
class ArgumentChecks:
    """What checks an action's arguments.

    :ivar plainly_right: yes only where C{validator} would find nothing, and much sooner.
    """

    plainly_right: Callable[[JSON], bool]
    validator: Validator


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
    return ArgumentChecks(plainly(schema, validator), validator(schema))


def _is_object(_checker: object, value: object) -> bool:
    return isinstance(value, Mapping)


def _is_array(_checker: object, value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


_Validator: Any = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many({"object": _is_object, "array": _is_array}),
)
