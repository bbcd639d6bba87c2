"""Checks GraphQL operations with the optional package C{graphql-core}, for C{aileron connector check} only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from aileron.base.files import Unreadable, read_file
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults
from aileron.base.toml import read_toml
from aileron.connectors._files import BOUNDARY, MOST_FIXTURE_BYTES, ConnectorFile
from aileron.connectors._template import Template
from aileron.model.connectors import READ, WRITE

from ._spec import HttpSpec

_EFFECTS = {"query": READ, "mutation": WRITE}
_NOT_CHECKED = "The GraphQL operations were not checked. To check them, install Aileron with its extra named graphql."


def check_graphql(file: ConnectorFile, spec: HttpSpec, note: Callable[[str], None]) -> tuple[LoadError, ...]:
    """Return the faults of the queries and variables in a file without other faults.

    :param note: called if C{graphql-core} is not installed.
    """
    bodies = {name: each.body.template for name, each in spec.operations.items() if each.body}
    found = {name: body for name, body in bodies.items() if spec.operations[name].is_graphql}
    if not found or file.data is None:
        return ()
    try:
        import graphql  # noqa: F401  (an extra)
    except ImportError:
        note(_NOT_CHECKED)
        return ()
    faults = FileFaults(file.name, read_toml(file.data.decode("utf-8")), BOUNDARY)
    schema = _read_schema(file)
    for name, body in found.items():
        effect = spec.operations[name].operation.effect
        for problem in _problems(body if isinstance(body, Mapping) else {}, effect, schema):
            faults.add(("operations", name, "graphql"), f"`graphql` {problem}")
    return faults.in_order()


def _read_schema(file: ConnectorFile) -> str | None:
    """Return the service's schema from the file of that name with the suffix C{.graphql}, or None if there is none."""
    try:
        return read_file(str(Path(file.name).with_suffix(".graphql")), 16 * MOST_FIXTURE_BYTES).data.decode("utf-8")
    except (Unreadable, UnicodeDecodeError):
        return None


def _problems(body: Mapping[str, Template], effect: str, sdl: str | None) -> Iterator[str]:
    from graphql import (
        GraphQLError,
        NonNullTypeNode,
        NoUndefinedVariablesRule,
        NoUnusedVariablesRule,
        OperationDefinitionNode,
        build_schema,
        parse,
        validate,
    )

    variables = body.get("variables")
    given = set(variables) if isinstance(variables, Mapping) else set()
    try:
        document = parse(str(body["query"]), max_tokens=10_000)
        schema = build_schema("type Query { none: Int }" if sdl is None else sdl)
    except (GraphQLError, TypeError) as error:
        yield f"cannot be read: {str(error).partition(chr(10))[0]}"
        return
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    if len(operations) != 1 or _EFFECTS.get(operations[0].operation.value) != effect:
        yield f"must have exactly one operation, a {'query' if effect == READ else 'mutation'} like its `effect`"
        return
    declared = {each.variable.name.value: each for each in operations[0].variable_definitions or ()}
    for name in sorted(given - set(declared)):
        yield f"has the variable {name!r}, which its query does not declare"
    for name, each in declared.items():
        if isinstance(each.type, NonNullTypeNode) and each.default_value is None and name not in given:
            yield f"lacks the variable {name!r}, which its query requires"
    rules = [NoUndefinedVariablesRule, NoUnusedVariablesRule] if sdl is None else None
    yield from (f"is wrong: {error.message}" for error in validate(schema, document, rules))
