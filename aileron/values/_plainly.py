"""Whether an object plainly has the form that its schema asks for: the usual case, without a validator's generality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ._json import JSON

Question: TypeAlias = Callable[[JSON], bool]

_UNDERSTOOD = frozenset({"type", "properties", "required", "additionalProperties"})
_NOTES = frozenset({"type", "title", "description", "default"})
_BOUND = frozenset({"maxLength"})
_PLAIN: Mapping[str, type] = {"string": str, "boolean": bool, "object": dict}
"""Types of which a validator takes all that Python takes for them; not so of numbers."""


class Checks(Protocol):
    """What a validator of one schema can tell."""

    def is_valid(self, instance: Any, /) -> bool:
        """Whether it has the schema's form."""

    def is_type(self, instance: Any, name: str, /) -> bool:
        """Whether it is of a type, by the schema's name for it."""


def plainly(schema: Mapping[str, Any], checks: Callable[[Any], Checks]) -> Question:
    """A question that is answered with yes only where a validator of C{schema} would find nothing.

    No says nothing: the validator tells then what is wrong, if anything is.

    :param schema: a closed object's with its members; of any other no is all that is ever said.
    :param checks: makes the validator of one member's schema.
    """
    closed = schema.get("type") == "object" and schema.get("additionalProperties") is False
    if not closed or not schema.keys() <= _UNDERSTOOD:
        return lambda _: False
    members = {name: _member(each, checks(each)) for name, each in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))

    def plain(value: JSON) -> bool:
        if not isinstance(value, dict) or not required <= value.keys():
            return False
        return all(name in members and members[name](each) for name, each in value.items())

    return plain


def _member(schema: Mapping[str, Any] | bool, checks: Checks) -> Question:
    kind = schema.get("type") if isinstance(schema, Mapping) and schema.keys() <= _NOTES | _BOUND else None
    if not isinstance(kind, str) or not isinstance(schema, Mapping):
        return checks.is_valid
    most, plain = schema.get("maxLength"), _PLAIN.get(kind)
    if most is not None:
        return (lambda value: isinstance(value, str) and len(value) <= most) if plain is str else checks.is_valid
    if plain is not None:
        return lambda value: isinstance(value, plain)
    return lambda value: checks.is_type(value, kind)
