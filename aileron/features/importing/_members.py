"""Finds the members that a caller can give of an object: its own, and those of all its alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from aileron.base.json import JSON, compact

from ._references import ApiDocument, Inexpressible, Node, WorkBudget, list_of, table_of
from ._schemas import flatten

ALTERNATIVES = ("oneOf", "anyOf")
_CONDITIONS = (
    "not",
    "minProperties",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "patternProperties",
)
_MOST_LEVELS = 3


@frozen
class ObjectMember:
    """A member of an object.

    :ivar trail: the references followed on the way to the member's schema.
    """

    name: str
    schema: JSON
    required: bool
    trail: frozenset[str]


@frozen
class ObjectMembers:
    """The members of an object that a caller can give.

    :ivar marks: texts about what is not checked or cannot be given.
    """

    found: Sequence[ObjectMember] = ()
    marks: tuple[str, ...] = ()


def find_members(document: ApiDocument, node: Node, work: WorkBudget, levels: int = _MOST_LEVELS) -> ObjectMembers:
    """Find the members of an object and of its alternatives, without read-only ones.

    A member of an alternative is required if all alternatives require it. An alternative that cannot be expressed is
    left out, which C{marks} of the result says.

    :param levels: how deep alternatives within alternatives are searched.
    """
    needed = {each for each in list_of(node.keys.get("required")) if isinstance(each, str)}
    found = {
        name: ObjectMember(name, each, name in needed, node.trail)
        for name, each in table_of(node.keys.get("properties")).items()
        if table_of(each).get("readOnly") is not True
    }
    marks = list(node.marks)
    for key in ALTERNATIVES:
        groups = list[Mapping[str, ObjectMember]]()
        for each in list_of(node.keys.get(key)) if levels else ():
            try:
                inside = flatten(document, each, work, node.trail)
            except Inexpressible as problem:
                marks.append(f"an alternative of it {problem}, and cannot be given")
                continue
            if inside.keys.get("type", "object") == "object":
                below = find_members(document, inside, work, levels - 1)
                groups.append({one.name: one for one in below.found})
                marks += below.marks
        if any(groups):
            marks.append(f"`{key}` of its body is not checked")
            found = {**{one.name: one for one in _unite(groups, needed)}, **found}
    conditions = (f"`{key}` of its body is not checked" for key in _CONDITIONS if key in node.keys)
    further = ("its further members cannot be given",) if found and node.keys.get("additionalProperties") else ()
    return ObjectMembers(tuple(found.values()), tuple(dict.fromkeys((*marks, *conditions, *further))))


def _unite(groups: Sequence[Mapping[str, ObjectMember]], needed: set[str]) -> Iterator[ObjectMember]:
    """Yield the members of all alternatives. Members of the same name become one that allows each of their schemas.

    :param needed: the names of the required members.
    """
    for name in dict.fromkeys(name for group in groups for name in group):
        same = [group[name] for group in groups if name in group]
        required = name in needed or (len(same) == len(groups) and all(each.required for each in same))
        schemas = list({compact(each.schema): each.schema for each in same}.values())
        trail = frozenset[str]().union(*(each.trail for each in same))
        schema: JSON = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        yield evolve(same[0], schema=schema, required=required, trail=trail)
