"""Follows the references of a document to its own parts, and of types to each other, in work that is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from attrs import define, frozen

from aileron.base.json import JSON

MOST_STEPS = 50_000
"""What looking through one operation may take, each schema counted as often as it is reached."""

_MOST_HOPS = 16
_MOST_REFERENCES = 60


class Inexpressible(Exception):
    """A part of a document that no file of ours can say; the message ends a sentence about that part."""


@define
class WorkBudget:
    """The work that may still be done for one operation."""

    left: int = MOST_STEPS

    def take(self, steps: int = 1) -> None:
        """Do so much of it.

        :raises Inexpressible: so much is not left.
        """
        self.left -= steps
        if self.left < 0:
            raise Inexpressible("is too large")


@frozen
class Node:
    """An object of a document, its reference followed.

    :ivar trail: the references that led here, by which a circle is known.
    :ivar marks: what it allows although the document refuses it.
    :ivar beside: what stands beside each reference that led here, the first one first.
    """

    keys: Mapping[str, Any]
    trail: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()
    beside: tuple[Mapping[str, Any], ...] = ()


@frozen
class ApiDocument:
    """A document with references to its own parts; none leads elsewhere, and C{$id} changes nothing."""

    root: Mapping[str, JSON]

    def follow(self, value: JSON, trail: frozenset[str] = frozenset()) -> Node:
        """Return the object that C{value} is, or refers to.

        :raises Inexpressible: it is none, or its reference leads to another document, nowhere, or in a circle.
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
    """Types as JSON Schemas that refer to each other by name.

    One that holds itself is described down to where it repeats; further down any object is allowed.

    :ivar most_within: so many of them within each other are described.
    """

    most_within: int = 100

    @classmethod
    def of(cls, types: Mapping[str, JSON], most_within: int = 100) -> NamedTypes:
        """Take the types by their names."""
        return cls({"types": types}, most_within)

    def follow(self, value: JSON, trail: frozenset[str] = frozenset()) -> Node:
        """Return the object that C{value} is, or refers to."""
        target = table_of(value).get("$ref")
        if target in trail or (target is not None and len(trail) >= self.most_within):
            return Node({"type": "object"}, trail, beside=(beside_reference(table_of(value)),))
        return super().follow(value, trail)


def beside_reference(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands beside the reference of an object."""
    return {key: each for key, each in value.items() if key != "$ref"}


def reference(name: str) -> dict[str, JSON]:
    """Refer to a type by its name."""
    return {"$ref": f"#/types/{name.replace('~', '~0').replace('/', '~1').replace('%', '%25')}"}


def table_of(value: object) -> Mapping[str, Any]:
    """Return an object as it is, and anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return an array as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return a text as it is, and anything else as an empty one."""
    return value if isinstance(value, str) else ""
