"""Reads GraphQL schemas, as SDL or as an introspection result, with C{graphql-core}, which is an optional extra."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import define, evolve, field, frozen
from graphql import (
    GraphQLError,
    GraphQLField,
    GraphQLSchema,
    build_ast_schema,
    build_client_schema,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_enum_type,
    is_input_object_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_required_argument,
    is_union_type,
    parse,
)

from aileron.base.addresses import host_shown
from aileron.base.json import JSON
from aileron.model.connectors import READ, WRITE

from ._derive import BEARER, discloses, effect_of, guarded, list_summaries, name_of
from ._references import Inexpressible, NamedTypes, WorkBudget, reference, table_of, text_of
from ._requests import Arguments
from ._schemas import narrow
from .description import ApiCredential, ApiDescription, ApiOperation, ApiParameter, NotImported, OperationSummary

MOST_TOKENS = 200_000
MOST_CHARACTERS = 8 * 1024 * 1024
MOST_FIELDS = 60
"""The maximal number of fields selected in one query. The operator can add and remove fields in the file."""
MOST_ARGUMENTS = 24
MOST_MEMBERS = 200
MOST_STEPS = 2_000
MOST_WITHIN = 3
"""How many types within each other are described."""
MOST_FRAGMENTS = 16
PAGE_SIZE = 50

_PAGED, _BACKWARDS, _PAGE_INFO = ("first", "after"), ("last", "before"), ("hasNextPage", "endCursor")
_NULL_MAY_BE_FAILURE = "whether it failed cannot be told if its answer may be null: see `errors` in the output"
_CLIENTS_OWN = "clientMutationId"
_IDENTITY = ("id", "identifier", "key", "name", "title", "login", "number", "url")
_SCALARS: Mapping[str, JSON] = {"Int": "integer", "Float": "number", "Boolean": "boolean"}
_ANYTHING = re.compile(r"json|object|any|map", re.IGNORECASE)


@frozen
class GraphqlSchema:
    """A GraphQL schema. Each field of its query type and its mutation type is an operation."""

    schema: GraphQLSchema = field(repr=False)
    base_url: str = ""

    @classmethod
    def read(cls, found: Mapping[str, Any] | str, base_url: str = "") -> GraphqlSchema:
        """Parse a schema.

        :param found: SDL text, or the decoded result of an introspection query.
        :raises NotImported: if the schema is invalid, too long or nested too deeply.
        """
        if isinstance(found, str) and (len(found) > MOST_CHARACTERS or found.count("#") > MOST_TOKENS):
            raise NotImported("The GraphQL schema is too long.")
        try:
            if isinstance(found, str):
                syntax = parse(found, no_location=True, max_tokens=MOST_TOKENS)
                schema = build_ast_schema(syntax, assume_valid_sdl=True)
            else:
                schema = build_client_schema(found, assume_valid=True)  # type: ignore[arg-type]
            for each in filter(is_enum_type, schema.type_map.values()):
                dict(each.values)  # graphql-core would otherwise validate them lazily, on first use
        except RecursionError:
            raise NotImported("The GraphQL schema is nested too deeply.") from None
        except (GraphQLError, TypeError, KeyError, ValueError, AttributeError):
            raise NotImported("The GraphQL schema cannot be read.") from None
        return cls(schema, base_url)

    @property
    def title(self) -> str:
        """Return the host of the base URL, or "GraphQL" without one: a schema has no title."""
        return host_shown(self.base_url) or "GraphQL"

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return the fields of the query type, then those of the mutation type."""
        return list_summaries(
            (key, key, method, "/graphql", text_of(each.description), _effect(method, key)[0])
            for method in ("query", "mutation")
            for key, each in self._fields(method).items()
        )

    def _fields(self, method: str) -> Mapping[str, GraphQLField]:
        root = self.schema.query_type if method == "query" else self.schema.mutation_type
        return {} if root is None else root.fields

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the API with the fields C{chosen}. Path and credential are guesses, which the description says."""
        return ApiDescription(
            name=name,
            title=self.title,
            base_url=self.base_url,
            operations=tuple(guarded(each, self._operation) for each in chosen),
            credential=ApiCredential(BEARER, ("a schema does not say how one signs in: this is a guess",)),
            marks=("a schema does not say under which path the service is: /graphql is a guess",),
        )

    @cached_property
    def types(self) -> NamedTypes:
        """The GraphQL schema's input types as JSON Schemas."""
        found = {name: each for name, each in self.schema.type_map.items() if is_input_object_type(each)}
        return NamedTypes.of({name: _members(each.fields) for name, each in found.items()}, MOST_WITHIN)

    def _operation(self, summary: OperationSummary) -> ApiOperation:
        asked = self._fields(summary.method)[summary.key]
        effect, destructive = _effect(summary.method, summary.key)
        selection = _Selection().of(asked.type, 1 if summary.method == "query" else 2)
        variables, given = _write_arguments(asked)
        query = f"{summary.method}{variables} {{ {summary.key}{given}{selection} }}"
        error, marks = _error(summary.key, asked)
        parameters, left_out = self._parameters(asked)
        return ApiOperation(
            name=summary.name,
            title=summary.words.partition(". ")[0],
            description=text_of(asked.description),
            effect=effect,
            destructive=destructive,
            asked=effect == READ and discloses(summary.key),
            method="POST",
            path=summary.path,
            parameters=parameters,
            body="graphql",
            constant=((("query",), query),),
            extra={"error": error, **({"pages": _pages(summary.key)} if effect == READ and _is_paged(asked) else {})},
            marks=(*marks, *left_out),
        )

    def _parameters(self, asked: GraphQLField) -> tuple[tuple[ApiParameter, ...], tuple[str, ...]]:
        """Make an argument of each variable. A required input object becomes one argument for each of its members.

        :return: the arguments, and marks about what could not be derived.
        :raises Inexpressible: if there are too many arguments, or a required one cannot be expressed.
        """
        arguments = Arguments(self.types, WorkBudget(MOST_STEPS * MOST_ARGUMENTS), frozenset())
        there = _arguments(asked)
        needed = {name: get_nullable_type(each.type) for name, each in there.items() if is_required_argument(each)}
        inputs = {name: dict(each.fields) for name, each in needed.items() if is_input_object_type(each)}
        plain = {name: each for name, each in there.items() if name not in inputs}
        whole: tuple[str, ...] = ()
        groups = [(whole, plain), *(((name,), members) for name, members in inputs.items())]
        marks: list[str] = []
        for steps, members in groups:
            known, described = len(arguments.found), _members(members)
            if len(table_of(described["properties"])) > MOST_MEMBERS:
                raise Inexpressible("it takes too many arguments")
            schemas = {name: self._fit(name, each, marks) for name, each in table_of(described["properties"]).items()}
            if schemas:
                arguments.add_members({**described, "properties": schemas})
            added = [evolve(each, steps=("variables", *steps, *each.steps)) for each in arguments.found[known:]]
            arguments.found[known:] = added
        return tuple(arguments.found), (*marks, *arguments.marks)

    def _fit(self, name: str, schema: Mapping[str, JSON], marks: list[str]) -> Mapping[str, JSON]:
        """Return the schema if an input can express it.

        Otherwise return it without its members, and say so in C{marks}.
        """
        try:
            fits = not narrow(self.types, schema, WorkBudget(MOST_STEPS)).marks
        except Inexpressible:
            fits = False
        if fits:
            return schema
        marks.append(f"{name}: its members are not checked, as there are too many")
        return {"type": schema.get("type", "object"), "description": schema.get("description", "")}


def _effect(method: str, key: str) -> tuple[str, bool]:
    """Return the effect of a field, and whether it may change or remove things, judged by its first and last word."""
    if method == "query":
        return READ, False
    words = name_of(key)
    return WRITE, all(effect_of("POST", each)[1] for each in (words, words.rpartition("_")[2]))


def _arguments(asked: GraphQLField) -> dict[str, Any]:
    """Return the arguments that a query passes to a field: required ones, paging ones, and others up to the limit."""
    used = {name: each for name, each in asked.args.items() if name not in (_BACKWARDS if _is_paged(asked) else ())}
    there = [name for name, each in used.items() if is_required_argument(each) or not each.deprecation_reason]
    there.sort(key=lambda name: (not is_required_argument(asked.args[name]), name not in _PAGED))
    needed = sum(is_required_argument(asked.args[name]) for name in there)
    return {name: asked.args[name] for name in there[: max(needed, MOST_ARGUMENTS)]}


def _write_arguments(asked: GraphQLField) -> tuple[str, str]:
    """Return the declaration of a query's variables and the arguments of its field; both empty without arguments."""
    there, paged = _arguments(asked), _is_paged(asked)
    usual = {"first": f" = {PAGE_SIZE}"} if paged else {}
    variables = ", ".join(f"${name}: {each.type}{usual.get(name, '')}" for name, each in there.items())
    given = ", ".join(f"{name}: ${name}" for name in there)
    return (f"({variables})", f"({given})") if there else ("", "")


def _members(fields: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the JSON Schema of an object with these arguments or input members as properties."""
    used = {name: each for name, each in fields.items() if is_required_argument(each) or not each.deprecation_reason}
    used.pop(_CLIENTS_OWN, None)
    schemas: dict[str, JSON] = {name: _schema(each.type, text_of(each.description)) for name, each in used.items()}
    needed: list[JSON] = [name for name, each in used.items() if is_required_argument(each)]
    return {"type": "object", "properties": schemas, "required": needed}


def _schema(given: Any, words: str = "") -> dict[str, JSON]:
    """Return the JSON Schema of an input type."""
    inner = get_nullable_type(given)
    said: dict[str, JSON] = {"description": words} if words else {}
    if is_list_type(inner):
        return {"type": "array", "items": _schema(inner.of_type), **said}
    if is_input_object_type(inner):
        return {**reference(inner.name), **said}
    if is_enum_type(inner):
        return {"type": "string", "enum": list(inner.values), **said}
    return {"type": "object" if _ANYTHING.search(inner.name) else _SCALARS.get(inner.name, "string"), **said}


def _is_connection(given: Any) -> bool:
    """Return whether a type is a connection in the sense of Relay: one page of nodes."""
    fields = getattr(get_named_type(given), "fields", {})
    inside = getattr(get_named_type(fields["pageInfo"].type), "fields", {}) if "pageInfo" in fields else {}
    return "nodes" in fields and set(_PAGE_INFO) <= inside.keys()


def _is_paged(asked: GraphQLField) -> bool:
    return _is_connection(asked.type) and set(_PAGED) <= asked.args.keys()


def _pages(key: str) -> dict[str, JSON]:
    info = f"data.{key}.pageInfo"
    found = {"cursor": f"{info}.endCursor", "until": f"{info}.hasNextPage == false"}
    return {"kind": "cursor", "items": f"data.{key}.nodes", "parameter": "variables.after", **found}


def _error(key: str, asked: GraphQLField) -> tuple[dict[str, JSON], tuple[str, ...]]:
    """Return the table C{error}, and a text about its uncertainty.

    The table is needed because GraphQL reports failures with status 200. The text says that a null may mean a failure
    or an empty result.
    """
    inner, place = get_nullable_type(asked.type), f"data.{key}"
    when, marks = f"{place} missing", () if is_non_null_type(asked.type) else (_NULL_MAY_BE_FAILURE,)
    if is_composite_type(inner):
        succeeds = "success" in getattr(inner, "fields", {})
        when, marks = f"{place}.success != true" if succeeds else f"{place}.__typename missing", ()
    return {"when": when, "message": "errors.0.message"}, marks


@define
class _Selection:
    """Writes the selection of a GraphQL query: scalar fields, and the identifying fields of nested objects.

    :ivar left: how many fields may still be selected.
    """

    left: int = MOST_FIELDS

    def of(self, given: Any, levels: int) -> str:
        """Return the selection for a type; empty for a scalar or an enum.

        :param levels: on how many levels all scalar fields are selected, not only identifying ones.
        """
        named = get_named_type(given)
        return "" if is_leaf_type(named) else f" {{ {' '.join(['__typename', *self._fields(named, levels)])} }}"

    def _fields(self, named: Any, levels: int) -> Iterator[str]:
        fields = _selectable(named)
        if _is_connection(named):
            yield f"nodes{self.of(fields['nodes'], levels)} pageInfo {{ {' '.join(_PAGE_INFO)} }}"
            return
        if is_union_type(named):
            yield from _write_fragments(named)
        plain = [name for name, each in fields.items() if is_leaf_type(get_named_type(each))]
        for name in plain if levels else [name for name in plain if name in _IDENTITY]:
            if self.left:
                self.left -= 1
                yield name
        for name in [each for each in fields if each not in plain] if levels else ():
            if self.left and not _is_connection(fields[name]):
                self.left -= 1
                inside = " ".join(self._fields(get_named_type(fields[name]), levels - 1))
                yield from [f"{name} {{ {inside} }}"] if inside else []


def _selectable(named: Any) -> dict[str, Any]:
    """Return the types of the fields that need no argument and are not deprecated, by name."""
    fields = {name: each for name, each in getattr(named, "fields", {}).items() if not each.deprecation_reason}
    fields.pop(_CLIENTS_OWN, None)
    return {name: each.type for name, each in fields.items() if not any(map(is_required_argument, each.args.values()))}


def _write_fragments(union: Any) -> Iterator[str]:
    """Yield a fragment with identifying fields for each member of a union.

    If a field has different types in two members, only the first member's fragment has the field.
    """
    known: dict[str, str] = {}
    for member in union.types[:MOST_FRAGMENTS]:
        fields = _selectable(member)
        names = [
            name
            for name in _IDENTITY
            if name in fields and known.setdefault(name, str(fields[name])) == str(fields[name])
        ]
        if names:
            yield f"... on {member.name} {{ {' '.join(names)} }}"
