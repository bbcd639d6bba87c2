"""The key C{ask} of an input: what only the person can say, asked for by a form of the agent's client.

MCP's forms know texts, numbers, yes or no, one of a choice and several of a choice, each in few words of JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._formats import FORMATS

_ALWAYS = frozenset({"type", "title", "description", "default"})
_KNOWN: Mapping[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "format", "pattern", "enum", "enumNames", "oneOf", "anyOf"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
_SEVERAL = (
    "of arrays a form can ask only for several of a choice: `schema` with `items` of "
    '`type = "string"` and `enum`, or of `anyOf`, each a `const` and a `title`'
)


def asking_problem(schema: Mapping[str, Any]) -> str | None:
    """Why no form can ask for what C{schema}, an input's whole, describes, or L{None}."""
    kind = schema["type"]
    if kind not in _KNOWN:
        return f"no form can ask for an {kind}"
    for key in schema:
        if key not in _ALWAYS | _KNOWN[kind]:
            return f"no form can say `{key}` of a value of type {kind}"
    if kind == "array":
        return None if _is_several(schema["items"]) else _SEVERAL
    return _text_problem(schema)


def _text_problem(schema: Mapping[str, Any]) -> str | None:
    if "format" in schema and schema["format"] not in FORMATS:
        return f"no form can ask for another `format` than {', '.join(FORMATS)}"
    found = [key for key in ("enum", "oneOf", "anyOf") if key in schema]
    if len(found) > 1:
        return f"no form can have both `{found[0]}` and `{found[1]}`"
    if "enum" in schema and not _are_texts(schema["enum"]):
        return "a form can offer only texts as `enum`"
    for key in ("oneOf", "anyOf"):
        if key in schema and not _are_titled(schema[key]):
            return f"a form can offer `{key}` only where each is a `const` and a `title`, both texts"
    return None


def _is_several(items: Mapping[str, Any]) -> bool:
    if items.keys() == {"type", "enum"}:
        return items["type"] == "string" and _are_texts(items["enum"])
    return items.keys() == {"anyOf"} and _are_titled(items["anyOf"])


def _are_titled(options: Sequence[Any]) -> bool:
    return all(each.keys() == {"const", "title"} and _are_texts(each.values()) for each in options)


def _are_texts(values: Any) -> bool:
    return all(isinstance(each, str) for each in values)
