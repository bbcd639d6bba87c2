"""What a constraint of a JSON Schema says to whoever broke it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}


def violation(keyword: str, wanted: Any) -> str:
    """The end of the sentence that begins with the value's name; it tells what is wanted and no value that was sent.

    :param keyword: of JSON Schema (2020-12), such as C{maxLength}.
    :param wanted: what stands beside it in the schema.
    """
    says = _SAYS.get(keyword)
    return "is not allowed here" if says is None else says(wanted)


def _types(names: str | list[str]) -> str:
    return " or ".join(_ARTICLES.get(name, f"a {name}") for name in ([names] if isinstance(names, str) else names))


def _alternatives(options: list[Any], otherwise: str) -> str:
    """What is wanted of a value for which there are C{anyOf} or C{oneOf}: mostly it is a choice with titles."""
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
