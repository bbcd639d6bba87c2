"""Recognises GraphQL requests with the optional package C{graphql-core}: one operation, a query or a mutation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from aileron.base.json import MOST_VALUES, loads_strict

if TYPE_CHECKING:
    from graphql import DocumentNode, OperationDefinitionNode

_MEMBERS = frozenset({"query", "variables", "operationName"})
_MOST_CHARACTERS = 64 * 1024
_MOST_TOKENS = 10_000
_HIDDEN = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters at which one parser may see the end of a line or of a comment, and another may not."""


class NotOneOperation(ValueError):
    """The error for a body that is not a GraphQL request with exactly one operation.

    The message is a sentence that repeats no value.
    """


@frozen
class GraphqlOperation:
    """The operation of a GraphQL request.

    :ivar is_mutation: True for a mutation, False for a query.
    :ivar name: its name, or empty.
    :ivar fields: the fields at its top level, without their aliases. Those of a query may be in fragments and are left
        out then.
    :ivar names: the names of all fields, at any depth and in fragments.
    """

    is_mutation: bool
    name: str
    fields: tuple[str, ...]
    names: frozenset[str] = field(default=frozenset(), eq=False)


def read_graphql(body: bytes) -> GraphqlOperation:
    """Return the operation of a request's body, which must be JSON.

    Only what all servers read in the same way is accepted: one query or mutation, and no batch, persisted query,
    extension or subscription.

    :raises NotOneOperation: if the body is anything else, or C{graphql-core} is not installed.
    """
    query, wanted = _read_members(body)
    document = _parse(query)
    operation = _find_operation(document)
    name = operation.name.value if operation.name else ""
    if wanted not in (None, name):
        raise NotOneOperation("The operationName is not the name of the operation.")
    # guard of own tools: subscriptions are refused
    #    -> features.own_tools.test_graphql.GraphqlTests.test_subscription
    if operation.operation.value not in ("query", "mutation"):
        raise NotOneOperation("GraphQL subscriptions are not supported.")
    is_mutation = operation.operation.value == "mutation"
    fields = tuple(_fields(operation, is_mutation=is_mutation))
    return GraphqlOperation(is_mutation, name, fields, frozenset(_names(document)))


def _read_members(body: bytes) -> tuple[str, object]:
    """Return the query and the name of the wanted operation, or None if there is none.

    :raises NotOneOperation: if the body is not one JSON object with the members of a GraphQL request.
    """
    try:
        # guard of own tools: a long GraphQL request does not stop the daemon
        #    -> features.own_tools.test_graphql.GraphqlTests.test_many_values, instead request = loads_strict(body)
        request = loads_strict(body, most_values=MOST_VALUES)
    except ValueError as error:
        raise NotOneOperation(
            "The body of a GraphQL request must be JSON that every parser reads the same way, with at most "
            f"{MOST_VALUES} values."
        ) from error
    # guard of own tools: batches and extensions are refused
    #    -> features.own_tools.test_graphql.GraphqlTests.test_members
    if not isinstance(request, Mapping) or not request.keys() <= _MEMBERS:
        raise NotOneOperation(
            "A GraphQL request can have only query, variables and operationName. Batches and persisted queries are not "
            "supported."
        )
    query, variables = request.get("query"), request.get("variables")
    if not isinstance(query, str) or not isinstance(variables, Mapping | None):
        raise NotOneOperation("A GraphQL request needs a query, and its variables must be an object.")
    if len(query) > _MOST_CHARACTERS:
        raise NotOneOperation(
            f"A GraphQL query can have at most {_MOST_CHARACTERS} characters. Put data into variables."
        )
    # guard of own tools: no query is read differently
    #    -> features.own_tools.test_graphql.GraphqlTests.test_hidden
    if _HIDDEN.search(query):
        raise NotOneOperation("The GraphQL query contains control characters.")
    return query, request.get("operationName")


def load_parser() -> None:
    """Import C{graphql-core}, if it is installed. This takes too long for a turn of the reactor."""
    with suppress(ImportError):
        import_module("graphql")


def _parse(query: str) -> DocumentNode:
    """Parse a query.

    :raises NotOneOperation: if the query is not valid, or C{graphql-core} is not installed.
    """
    try:
        from graphql import GraphQLError, parse
    except ImportError:
        raise NotOneOperation(
            "Aileron cannot read GraphQL requests: it was installed without its extra named graphql."
        ) from None
    try:
        return parse(query, no_location=True, max_tokens=_MOST_TOKENS)
    except (GraphQLError, RecursionError) as error:
        raise NotOneOperation("The GraphQL query is not valid, or is too long.") from error


def _find_operation(document: DocumentNode) -> OperationDefinitionNode:
    """Return the only operation of a document.

    :raises NotOneOperation: if it has none or several, or defines types.
    """
    from graphql import FragmentDefinitionNode, OperationDefinitionNode

    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    others = [each for each in document.definitions if not isinstance(each, OperationDefinitionNode)]
    # guard of own tools: one operation
    #    -> features.own_tools.test_graphql.GraphqlTests.test_several
    if len(operations) != 1 or not all(isinstance(each, FragmentDefinitionNode) for each in others):
        raise NotOneOperation("A GraphQL request must have exactly one operation, and can have fragments.")
    return operations[0]


def _names(document: DocumentNode) -> Iterator[str]:
    """Yield the names of all fields of a document, without their aliases."""
    from graphql import FieldNode

    within: list[Any] = list(document.definitions)
    while within:
        each = within.pop()
        if isinstance(each, FieldNode):
            yield each.name.value
        inner = getattr(each, "selection_set", None)  # a spread of a fragment has none
        if inner is not None:
            within.extend(inner.selections)


def _fields(operation: OperationDefinitionNode, *, is_mutation: bool) -> Iterator[str]:
    """Yield the names of the operation's top-level fields.

    :raises NotOneOperation: if a mutation names them in fragments.
    """
    from graphql import FieldNode

    for each in operation.selection_set.selections:
        if isinstance(each, FieldNode):
            yield each.name.value
        elif is_mutation:
            raise NotOneOperation("A GraphQL mutation must name its fields directly, and not in fragments.")
