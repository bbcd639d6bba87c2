"""Narrows the schemas of a foreign document to what an input of an action can express.

The result allows nothing that the document's schema refuses. Where that is impossible, a mark says what is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from aileron.actions import input_schema_problem
from aileron.base.json import JSON, compact

from ._references import ApiDocument, Inexpressible, Node, WorkBudget, list_of, table_of, text_of
from .files import one_line

_MOST_NESTED_WORDS = 160
_MOST_PATTERN_CHARACTERS = 65_536
_MOST_NUMBER = 2**53 - 1
_ATTEMPTS = ((_MOST_NESTED_WORDS, 12), (0, 12), (0, 6), (0, 4), (0, 2))
"""The limits tried in order until a schema fits: the length of descriptions, and the depth."""

_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "format"),
    "integer": _OF_NUMBERS,
    "number": _OF_NUMBERS,
    "boolean": (),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties"),
}
_UNCHECKED = (
    "not",
    "if",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "prefixItems",
    "contains",
)
_NESTED = ("array", "object")
_WORDS = ("title", "description", "example", "examples", "default", "deprecated", "xml", "externalDocs")
_ALTERNATIVES = ("oneOf", "anyOf")
_BOTH: Mapping[str, Callable[[Any, Any], Any]] = {
    "required": lambda one, other: list(dict.fromkeys([*one, *other])),
    "enum": lambda one, other: _common(one, {compact(each) for each in other}),
    "items": lambda one, other: {"allOf": [one, other]},
    "additionalProperties": lambda one, other: False if False in (one, other) else other if one is True else one,
    "nullable": lambda one, other: one and other,
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), min),
    **dict.fromkeys(_WORDS, lambda _, other: other),
}
"""How a keyword of two schemas is merged if both schemas apply."""


def _common(options: list[Any], others: set[str]) -> list[Any]:
    return [each for each in options if compact(each) in others]


@frozen
class Narrowed:
    """A schema narrowed to what an input of an action can express.

    :ivar marks: texts about what the schema does not check or no longer allows.
    """

    schema: Mapping[str, JSON]
    marks: tuple[str, ...] = ()


def narrow(
    document: ApiDocument, value: JSON, work: WorkBudget, trail: frozenset[str] = frozenset(), *, usual: str = "string"
) -> Narrowed:
    """Narrow a schema of a document, dropping descriptions and deep levels if the result is too large.

    :param usual: the type for a schema that allows any type.
    :raises Inexpressible: if no input can express the schema or a narrower one.
    """
    problem = "is too large"
    for words, levels in _ATTEMPTS:
        narrowing = _Narrowing(document, work, words)
        schema = narrowing.of(value, levels, trail)
        if "type" not in schema:
            schema = narrowing.with_type(schema, usual)
        try:
            problem = input_schema_problem(schema) or ""
        except ValueError:
            problem = "it holds a value that the file format cannot hold"
        if not problem:
            return Narrowed(schema, tuple(dict.fromkeys(narrowing.marks)))
    raise Inexpressible(f"cannot be written as an input: {problem}")


def flatten(document: ApiDocument, value: JSON, work: WorkBudget, trail: frozenset[str] = frozenset()) -> Node:
    """Return a schema as a single object, with references followed and C{allOf} merged.

    :raises Inexpressible: if merged parts contradict each other, or the value is not a schema.
    """
    if isinstance(value, Mapping) and not isinstance(value.get("$ref"), str):
        node = Node(value, trail)
    else:
        node = document.follow({} if value is True else value, trail)
        for beside in filter(None, reversed(node.beside)):
            keys = _merge(node.keys, beside)
            node = evolve(node, keys=keys, marks=(*node.marks, *_refused_members(keys, (node.keys, beside))))
    work.take(1 + sum(len(each) for each in node.keys.values() if isinstance(each, list | dict)))
    parts = list_of(node.keys.get("allOf"))
    own = {key: each for key, each in node.keys.items() if key not in ("allOf", "const")}
    if "const" in node.keys:
        own = _merge({"enum": [node.keys["const"]]}, own)
    trail, marks, merged = node.trail, [*node.marks], list[Mapping[str, Any]]([own])
    for part in parts:
        inside = flatten(document, part, work, node.trail)
        merged.append(inside.keys)
        own, trail = _merge(inside.keys, own) if own else dict(inside.keys), trail | inside.trail
        marks += inside.marks
    return Node(own, trail, (*marks, *_refused_members(own, merged)))


def _refused_members(merged: Mapping[str, Any], parts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return a text that names the members that one part of a merged schema describes and another part forbids.

    Return an empty tuple if there are none. A part forbids all members that it does not list if it has
    C{additionalProperties = false}; such a part without a list is ignored, since it is meant for all parts.
    """
    closed = [each for each in parts if each.get("additionalProperties") is False and "properties" in each]
    members = table_of(merged.get("properties"))
    allowed = {*members}.intersection(*(table_of(each["properties"]) for each in closed))
    names = one_line(", ".join(each for each in members if each not in allowed), _MOST_NESTED_WORDS)
    return (f"another part of the schema does not allow {names}",) if names else ()


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema that allows only what both schemas allow.

    :raises Inexpressible: if the schemas contradict each other.
    """
    found = dict(one)
    for key, value in other.items():
        if key not in found or (key != "enum" and found[key] == value):  # True equals 1, so enums are always merged
            found[key] = value
        elif key == "properties":
            found[key] = _merge_properties(table_of(found[key]), table_of(value))
        elif key == "type":
            found[key] = _common_type(found[key], value)
        elif key in _BOTH:
            try:
                found[key] = _BOTH[key](found[key], value)
            except TypeError:
                raise Inexpressible(f"has a `{key}` that is none") from None
        elif not key.startswith("x-"):
            raise Inexpressible(f"has two of `{key}`")
    return found


def _merge_properties(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {**one, **{name: {"allOf": [one[name], each]} if name in one else each for name, each in other.items()}}


def _common_type(one: Any, other: Any) -> list[str]:
    mine, theirs = (each if isinstance(each, list) else [each] for each in (one, other))
    if not (common := [each for each in mine if each in theirs]):
        raise Inexpressible("must be of two types at once")
    return common


@define
class _Narrowing:
    """One attempt to narrow a schema, with the marks so far.

    :ivar words: the maximal length of a description inside the schema; 0 for no descriptions.
    :ivar losses: for each schema that allows values which its narrowed form refuses, without a mark: the level of the
        schema, and whether null is the only such value.
    """

    document: ApiDocument
    work: WorkBudget
    words: int
    marks: list[str] = field(factory=list)
    losses: list[tuple[int, bool]] = field(factory=list)

    def of(self, value: JSON, levels: int, trail: frozenset[str]) -> dict[str, JSON]:
        """Narrow a schema.

        :param levels: how many levels the schema may still have.
        :raises Inexpressible: if the schema cannot be expressed.
        """
        if levels == 0:
            raise Inexpressible("is nested too deeply")
        node = flatten(self.document, value, self.work, trail)
        self.marks += [*node.marks, *(f"`{key}` is not checked" for key in _UNCHECKED if key in node.keys)]
        for key in _ALTERNATIVES:
            if list_of(node.keys.get(key)):
                return self._alternatives(key, node, levels)
        kinds = _types(node.keys)
        if (loss := _find_loss(node.keys, kinds)) is not None:
            self.losses.append((levels, loss))
        if len(kinds) == 1:
            return self._one(kinds[0], node, levels)
        if not kinds:
            return self._described(node)
        return {"anyOf": [self._one(kind, node, levels) for kind in kinds]}

    def with_type(self, schema: Mapping[str, JSON], usual: str) -> dict[str, JSON]:
        """Return the schema reduced to one type, as an input must have one. Record which types were dropped.

        :param usual: the type for a schema that allows any type.
        """
        options = [each for key in _ALTERNATIVES for each in list_of(schema.get(key))]
        kinds = list(dict.fromkeys(str(each.get("type")) for each in options if each.get("type") in _TYPES))
        if not kinds:
            self.marks.append(f"it can be of any type; only the type {usual} can be given")
            return {"type": usual}
        kind = next((each for each in ("object", "array") if each in kinds), kinds[0])
        fitting = [each for each in options if each.get("type") == kind]
        self.marks.append(f"only the type {kind} can be given, of {', '.join(kinds)}")
        return dict(fitting[0]) if len(fitting) == 1 else {"type": kind, "anyOf": fitting}

    def _alternatives(self, key: str, node: Node, levels: int) -> dict[str, JSON]:
        base = {name: each for name, each in node.keys.items() if name != key}
        nothings = [self._find_nothings(each, node.trail) for each in node.keys[key]]
        given = [each for each, nothing in zip(node.keys[key], nothings, strict=True) if not nothing]
        found: list[dict[str, JSON]] = []
        before = len(self.losses)
        for each in given:
            try:
                found.append(self.of({"allOf": [base, each]} if base else each, levels - 1, node.trail))
            except Inexpressible as problem:
                self.marks.append(f"an alternative of it {problem}, and cannot be given")
        if not found:
            raise Inexpressible("has no alternative that can be written as an input")
        left_out = [value for each in nothings for value in each]
        losses = [(level == levels - 1, is_null) for level, is_null in self.losses[before:]]
        if key == "oneOf" and (1 < len(found) < len(given) or _may_match_several(found, losses, left_out)):
            self.marks.append("that it matches only one alternative is not checked")
        if left_out:
            self.losses.append((levels, False))
        if len(found) == 1:
            return found[0]
        kinds = {each.get("type") for each in found}
        own: dict[str, JSON] = {"type": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}
        return {**own, key: found}

    def _find_nothings(self, value: JSON, trail: frozenset[str]) -> list[JSON]:
        """Return the values of an alternative that allows only null or an empty text; empty if it allows others."""
        try:
            keys = self.document.follow(value, trail).keys
        except Inexpressible:
            return []
        options = [None] if keys.get("type") == "null" else list_of(keys.get("enum"))
        return options if all(each in (None, "") for each in options) else []

    def _one(self, kind: str, node: Node, levels: int) -> dict[str, JSON]:
        """Narrow a schema to the type C{kind}.

        :raises Inexpressible: if that type has no choice, or a part cannot be expressed.
        """
        keys = node.keys
        schema: dict[str, JSON] = {"type": kind, **self._described(node)}
        schema.update({key: keys[key] for key in _KEYWORDS[kind] if key in keys and not _is_beyond(keys[key])})
        if "enum" in keys:
            schema.pop("format", None)
            schema["enum"] = _choose(kind, list_of(keys["enum"]))
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            said = schema.pop(exclusive, None)
            if said is True and bound in schema:  # OpenAPI 3.0: a flag for the bound
                schema[exclusive] = schema.pop(bound)
            elif said is not None and not isinstance(said, bool):  # JSON Schema: a number of its own
                schema[exclusive] = said
        if kind == "string" and isinstance(keys.get("pattern"), str):
            self._add_pattern(schema, keys["pattern"])
        if kind == "array" and keys.get("items") not in (None, {}, True):
            schema["items"] = self.of(keys["items"], levels - 1, node.trail)
        return schema | self._members(node, levels) if kind == "object" else schema

    def _described(self, node: Node) -> dict[str, JSON]:
        words = one_line(text_of(node.keys.get("description")), self.words) if self.words else ""
        return {"description": words} if words else {}

    def _add_pattern(self, schema: dict[str, JSON], pattern: str) -> None:
        most = schema.get("maxLength")
        most = min(most, _MOST_PATTERN_CHARACTERS) if isinstance(most, int) else None
        wanted = {**schema, "pattern": pattern, **({} if most is None else {"maxLength": most})}
        if input_schema_problem(wanted) is None:
            schema.update(wanted)
        else:
            self.marks.append(f"the pattern {one_line(pattern, 80)} is not checked")

    def _members(self, node: Node, levels: int) -> dict[str, JSON]:
        keys, found, closed = node.keys, dict[str, JSON](), node.keys.get("additionalProperties") is False
        properties = table_of(keys.get("properties"))
        needed = dict.fromkeys(each for each in list_of(keys.get("required")) if isinstance(each, str))
        for name, value in properties.items():
            if table_of(value).get("readOnly") is True:
                needed.pop(name, None)
                continue
            try:
                found[name] = self.of(value, levels - 1, node.trail)
            except Inexpressible as problem:
                if name in needed:
                    raise Inexpressible(f"needs {one_line(name, 60)}, which {problem}") from None
                self.marks.append(f"{one_line(name, 60)} in it {problem}, and cannot be given")
                closed = True
        if closed and not needed.keys() <= found.keys():
            raise Inexpressible("needs a member that it does not describe")
        if table_of(keys.get("additionalProperties")) and not closed:
            self.marks.append("the values of its further members are not checked")
        said: dict[str, JSON] = {"properties": found} if found else {}
        said |= {"required": list(needed)} if needed else {}
        return {**said, "additionalProperties": False} if closed else said


def _choose(kind: str, options: Sequence[Any]) -> list[JSON]:
    """Return the distinct choices that have the type C{kind}.

    :raises Inexpressible: if there are none.
    """
    found = {compact(each): each for each in options if kind in _types_of_value(each) and kind not in _NESTED}
    if not found:
        raise Inexpressible(f"has a choice of no {kind}")
    return list(found.values())


def _types(keys: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows, without null; empty if the schema allows any type.

    :raises Inexpressible: if the schema allows no known type.
    """
    said = keys.get("type")
    if said is not None:
        kinds = [each for each in (said if isinstance(said, list) else [said]) if each in _TYPES]
        if not kinds:
            raise Inexpressible(f"is of the type {one_line(str(said), 40)}")
        return kinds
    if "enum" in keys:
        options = list_of(keys["enum"])
        kinds = list(dict.fromkeys(kind for each in options for kind in list(_types_of_value(each))[:1]))
        if not kinds:
            raise Inexpressible("has a choice of nothing")
        return kinds
    implied = (("object", ("properties", "additionalProperties")), ("array", ("items",)), ("string", ("pattern",)))
    return [kind for kind, words in implied if any(word in keys for word in words)][:1]


def _find_loss(keys: Mapping[str, Any], kinds: Sequence[str]) -> bool | None:
    """Return whether a schema that is reduced to these types loses null alone, or None if it loses no value."""
    said, options = keys.get("type"), list_of(keys.get("enum"))
    implied = bool(kinds) and said is None and "enum" not in keys
    kept = (each for each in options if each is not None and not isinstance(each, (list, dict)))
    others = implied or sum(any(kind in kinds for kind in _types_of_value(each)) for each in kept) < sum(
        each is not None for each in options
    )
    if others:
        return False
    may_be_null = None in options if "enum" in keys else (isinstance(said, list) and "null" in said)
    return True if may_be_null or keys.get("nullable") is True else None


def _may_match_several(
    found: Sequence[Mapping[str, JSON]], losses: Sequence[tuple[bool, bool]], left_out: Sequence[JSON]
) -> bool:
    """Return whether a value that several alternatives of a C{oneOf} allow may match only one of their narrowed forms.

    :param losses: for each loss of the alternatives: whether an alternative itself lost it, and whether only null.
    :param left_out: the values of the alternatives that were left out: null and the empty text.
    """
    kinds = ["number" if each.get("type") == "integer" else each.get("type") for each in found]
    if None in kinds:
        return bool(left_out or losses)
    texts = [each for each in found if each["type"] == "string" and not each.get("minLength")]
    blank = any("" in list_of(each.get("enum", [""])) for each in texts)
    inside = any(not is_own or not is_null for is_own, is_null in losses)
    own = any(is_own and not is_null for is_own, is_null in losses)
    return ("" in left_out and blank) or (own and len(found) > 1) or (inside and len({*kinds}) < len(found))


def _types_of_value(value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield "boolean"
    elif isinstance(value, (int, float)):
        if not _is_beyond(value):
            yield from ("integer", "number") if float(value).is_integer() else ("number",)
    elif isinstance(value, str):
        yield "string"
    elif isinstance(value, (list, dict)):
        yield "array" if isinstance(value, list) else "object"


def _is_beyond(value: Any) -> bool:
    """Return whether a bound exceeds every number that an argument can have, so that it excludes nothing."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > _MOST_NUMBER
