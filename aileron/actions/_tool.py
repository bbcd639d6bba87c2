"""An action as an MCP tool: its name, and the JSON Schema of its input."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.json import JSON
from aileron.model.actions import Action, Input

from ._checks import Check, check_of
from ._formats import MOST_CHARACTERS
from ._own_schema import choices

MAX_TOOL_NAME = 48
"""The longest tool name. Agents add their own prefix, and model providers refuse more than 64 characters."""

_MARK = 6
_OTHER = re.compile(r"[^a-z0-9_]")


def tool_name(name: str) -> str:
    """Return the name of the action's MCP tool: every character outside C{[a-z0-9_]} becomes an underscore.

    A name longer than L{MAX_TOOL_NAME} is cut and ends with a hash of the whole name.

    :param name: a valid action name, at most 64 characters long.
    """
    plain = _OTHER.sub("_", name)
    return plain if len(plain) <= MAX_TOOL_NAME else _mark(plain, name)


def with_unique_tool_names(actions: Mapping[str, Action]) -> Mapping[str, Action]:
    """Return the actions, by name, with unique tool names. Each action that shares a tool name gets a new one.

    No action keeps the shared name, since a caller could not know which action the name now calls.
    """
    uses = Counter(action.tool_name for action in actions.values())
    return {
        name: action if uses[action.tool_name] == 1 else evolve(action, tool_name=_mark(action.tool_name, name))
        for name, action in actions.items()
    }


def _mark(plain: str, name: str) -> str:
    mark = hashlib.sha256(name.encode()).hexdigest()[:_MARK]
    return f"{plain[: MAX_TOOL_NAME - _MARK - 1]}_{mark}"


DEFAULT_MAX_LENGTH = MOST_CHARACTERS
_CONSTRAINTS = ("minimum", "maximum", "format")


def input_schema(inputs: Sequence[Input]) -> Mapping[str, JSON]:
    """Return the JSON Schema of an action's arguments, as shown to MCP hosts and in the API document."""
    return {
        "type": "object",
        "properties": {one.name: property_schema(one) for one in inputs},
        "required": [one.name for one in inputs if one.required],
        "additionalProperties": False,
    }


def property_schema(one: Input) -> dict[str, JSON]:
    """Return the schema of one argument. Arrays always declare C{items}, since some hosts refuse them otherwise."""
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
    """Return the schema that the author wrote, with missing keys added from the input."""
    added = _words(one)
    if one.type == "array":
        added["items"] = {}
    if one.type == "string" and choices(schema) is None and "const" not in schema:
        added["maxLength"] = DEFAULT_MAX_LENGTH
    if one.has_default:
        added["default"] = one.default
    return {**added, **_limit(schema)}


def _limit(schema: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the schema with a maximum length added to each text that has a pattern but no maximum length."""
    limited = {key: _limited_part(key, value) for key, value in schema.items()}
    return {"maxLength": DEFAULT_MAX_LENGTH, **limited} if "pattern" in schema else limited


def _limited_part(key: str, value: Any) -> JSON:
    if key == "properties":
        return {name: _limit(each) for name, each in value.items()}
    if key in ("oneOf", "anyOf"):
        return [_limit(each) for each in value]
    return _limit(value) if key == "items" else value


def _words(one: Input) -> dict[str, JSON]:
    words: dict[str, JSON] = {"description": one.description}
    return words if one.label is None else {**words, "title": one.label}


@frozen
class ArgumentChecks:
    """The checks of an action's arguments.

    :ivar each: the check of each argument, by its name.
    :ivar costly: the names of arguments whose schema the author wrote, so that their check needs a limit.
    """

    required: tuple[str, ...]
    each: Mapping[str, Check]
    costly: frozenset[str]


def argument_checks(action: Action) -> ArgumentChecks:
    """Return the checks of an action's arguments. They are cached by the digest of the action's file."""
    own = frozenset(one.name for one in action.inputs if one.schema is not None)
    return _make(_KnownSchema(action.digest, own, action.input_schema))


@frozen
class _KnownSchema:
    """A schema as cache key of L{_make}. It is compared by the digest of its action's file and not by its content."""

    digest: str
    own: frozenset[str]
    schema: Mapping[str, Any] = field(eq=False)


@lru_cache(maxsize=512)
def _make(known: _KnownSchema) -> ArgumentChecks:
    members = known.schema.get("properties", {})
    checks = {name: check_of(each) for name, each in members.items()}
    return ArgumentChecks(tuple(known.schema.get("required", ())), checks, known.own)
