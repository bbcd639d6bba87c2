"""The key C{ask} of an input: what only the person can say, asked for by a form of the agent's client."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.values import JSON, Input

from ._schema_parts import choices

_ONE_VALUE = ("string", "integer", "number", "boolean")


def asking_problem(one: Input) -> str | None:
    """Why no form can ask for C{one}, or L{None}."""
    if one.type in _ONE_VALUE:
        return None
    if one.type == "object":
        return "no form can ask for an object"
    items = one.schema.get("items") if one.schema is not None else None
    if not _are_texts(items):
        return "of arrays a form can ask only for several of a choice: `schema` with strings as `items.enum` or `const`"
    return None


def _are_texts(items: JSON) -> bool:
    if not isinstance(items, Mapping) or items.get("type", "string") != "string":
        return False
    found = choices(items)
    return bool(found) and all(isinstance(each, str) for each in found or ())
