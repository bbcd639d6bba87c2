"""Follows references inside a document and between types, within a work budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from attrs import define, frozen

from aileron.base.json import JSON

MOST_STEPS = 50_000
"""The work budget for one operation. A schema counts each time it is reached."""

_MOST_HOPS = 16
_MOST_REFERENCES = 60


class Inexpressible(Exception):
    """A part of a document that no connector or action file can express. The message ends a sentence about the part."""


@define
class WorkBudget:
    """The number of steps that may still be spent on one operation."""

    left: int = MOST_STEPS

    def take(self, steps: int = 1) -> None:
        """Spend C{steps} of the budget.

        :raises Inexpressible: if the budget does not suffice.
        """
        self.left -= steps
        if self.left < 0:
            raise Inexpressible("is too large")


@frozen
class Node:
    """An object of a document, after its references were followed.

    :ivar keys: the object's members.
    :ivar trail: the references followed on the way, to detect cycles.
    :ivar marks: texts about what the object allows although the document refuses it.
    :ivar beside: the members next to each followed C{$ref}, in the order of following.
    """

    keys: Mapping[str, Any]
    trail: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()
    beside: tuple[Mapping[str, Any], ...] = ()


@frozen
class ApiDocument:
    """A document with references to its own parts. References to other documents are refused; C{$id} is ignored."""

    root: Mapping[str, JSON]

    def follow(self, value: JSON, trail: frozenset[str] = frozenset()) -> Node:
        """Return the object that C{value} is, or refers to.

        :raises Inexpressible: if the value is not an object, or the reference leads to another document, to a missing
            part, into a cycle, or too deep.
        """
        beside = list[Mapping[str, Any]]()
        for _ in range(_MOST_HOPS):
            if not isinstance(value, Mapping):
                raise Inexpressible("is not an object")
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return Node(value, trail, beside=tuple(beside))
            if reference in trail:
                raise Inexpressible("refers to itself")
            if len(trail) >= _MOST_REFERENCES:
                raise Inexpressible("is nested too deeply")
            trail |= {reference}
            beside.append(beside_reference(value))
            value = self._find(reference)
        raise Inexpressible("refers to a reference of a reference, too often")

    def _find(self, reference: str) -> JSON:
        if not reference.startswith("#/"):
            raise Inexpressible("refers to another document")
        found: Any = self.root
        for part in reference[2:].split("/"):
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(found):
                found = found[int(name[:9])]
            else:
                raise Inexpressible("refers to a part that is not there")
        return found  # type: ignore[no-any-return]


@frozen
class NamedTypes(ApiDocument):
    """Named types as JSON Schemas that refer to each other.

    A type that contains itself is described down to the repetition. Below that, any object is allowed.

    :ivar most_within: how many types within each other are described.
    """

    most_within: int = 100

    @classmethod
    def of(cls, types: Mapping[str, JSON], most_within: int = 100) -> NamedTypes:
        """Create an object from JSON Schemas by their names.

        :param most_within: the most schemas that may be nested.
        """
        return cls({"types": types}, most_within)

    def follow(self, value: JSON, trail: frozenset[str] = frozenset()) -> Node:
        """Return the object that C{value} is or refers to; any object if the reference repeats or is too deep.

        :raises Inexpressible: if the value is not an object, or the type is missing.
        """
        target = table_of(value).get("$ref")
        if target in trail or (target is not None and len(trail) >= self.most_within):
            return Node({"type": "object"}, trail, beside=(beside_reference(table_of(value)),))
        return super().follow(value, trail)


def beside_reference(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an object without its C{$ref}."""
    return {key: each for key, each in value.items() if key != "$ref"}


def reference(name: str) -> dict[str, JSON]:
    """Return a reference to the type C{name}."""
    return {"$ref": f"#/types/{name.replace('~', '~0').replace('/', '~1').replace('%', '%25')}"}


def table_of(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, or an empty object if it is not."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return the value if it is an array, or an empty array if it is not."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return the value if it is a text, or an empty text if it is not."""
    return value if isinstance(value, str) else ""
