"""Reads the table C{[own_tools]} of a connector file, for an agent's own command-line tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from aileron.base.addresses import read_base_url
from aileron.base.tables import ANY_TEXT, FileTable, TextRule, quote
from aileron.connectors._forwarding import SERVICE_RULE
from aileron.connectors._headers import header_name
from aileron.connectors.packages import PACKAGE_FORMS
from aileron.model.connectors import READ, ConnectorDescription
from aileron.model.own_tools import (
    ASK,
    ERROR_FORMS,
    REFUSE,
    REGION,
    AwsCalls,
    RequestTemplate,
    ToolDeclaration,
    ToolRoute,
)
from aileron.model.places import variables_in

from ._spec import HttpOperation

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,60}_(?:TOKEN|KEY|KEY_ID|PASSWORD|SECRET|USERNAME|REGION)")
"""Names of variables that hold credentials or a region. Other names could change what a tool does, such as
C{LD_PRELOAD}.
"""
PLACEHOLDER = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_-]{7,99}|\{[a-z][a-z0-9_]*\})?")
OPERATION = re.compile(r"[A-Z][A-Za-z0-9]{0,99}")
TARGET = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
AWS_SERVICE = re.compile(r"[a-z][a-z0-9-]{0,39}")
PATH = re.compile(r"(?:/[A-Za-z0-9_.~$-]+)+")
GRAPHQL_PATH = re.compile(rf"{PATH.pattern}/?")
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ROUTE = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE|\*) ((?:/(?:[A-Za-z0-9_.~$-]+|\{[a-z][a-z0-9_]*\}))+)")
RAW = (ASK, REFUSE)
GET = (READ, ASK)


def read_own_tools(
    document: FileTable, description: ConnectorDescription, operations: Mapping[str, HttpOperation]
) -> ToolDeclaration | None:
    """Read the table C{[own_tools]}, or return None if there is none. Faults are added to the table.

    :param description: the connector, without this table.
    """
    table = document.optional_table("own_tools")
    if table is None:
        return None
    if description.credential is None:
        document.fault("own_tools", "is for a connector that has a [credential]")
    found = ToolDeclaration(
        service=table.text("service", SERVICE_RULE),
        hosts=_hosts(table, description),
        variables=_variables(table.table("variables", required=True), description),
        headers=_headers(table, "headers", required=True),
        paths=_paths(table, "paths", PATH),
        graphql=_paths(table, "graphql", GRAPHQL_PATH),
        reads=_routes(table, "reads"),
        credentials=_routes(table, "credentials"),
        credential_fields=_fields(table, "credential_fields"),
        hidden=_fields(table, "hidden"),
        refused=_routes(table, "refused"),
        varying=_headers(table, "varying"),
        packages=table.choice("packages", ("", *PACKAGE_FORMS), ""),
        errors=table.choice("errors", ERROR_FORMS, "text"),
        raw=table.choice("raw", RAW, REFUSE),
        get_asks=table.choice("get", GET, READ) == ASK,
        requests=tuple(_templates(description, operations)),
        aws=_aws(table, description),
    )
    table.close()
    return found


def _hosts(table: FileTable, description: ConnectorDescription) -> tuple[str, ...]:
    """Return the hosts that the tools address: those at C{hosts}, or else all of the connector's."""
    declared = description.hosts
    named = table.some("hosts", declared, "has {}, which the connector does not declare as host:port")
    if not declared:
        table.fault("hosts", "must list at least one host:port, and the connector declares none")
    return tuple(each.removesuffix(":443") for each in named or declared)


def _variables(table: FileTable, description: ConnectorDescription) -> Mapping[str, str]:
    template = description.template
    places = {f"{{{each.name}}}" for each in template.placed} if template is not None else set[str]()
    if not table.values:
        table.faults.add(table.path, "`variables` must name at least one variable")
    for name in table.values:
        if not VARIABLE.fullmatch(name):
            table.fault(name, "must be named like the variable of a credential, such as GH_TOKEN")
        value = table.text(name, ANY_TEXT)
        if not PLACEHOLDER.fullmatch(value):
            table.fault(name, "must be empty, or a placeholder of 8 to 100 letters, digits, '_' and '-'")
        elif value.startswith("{") and value not in places:
            table.fault(name, "names no variable of the base URL")
        elif name.endswith(REGION) != value.startswith("{"):
            table.fault(name, "must be a variable of the base URL if it names a region, and else a placeholder")
    return {name: value for name, value in table.values.items() if isinstance(value, str)}


def _headers(table: FileTable, key: str, *, required: bool = False) -> frozenset[str]:
    names = table.texts(key, required=required)
    for each in names:
        try:
            header_name(each)
        except ValueError as error:
            table.fault(key, f"has {quote(each)}, which {error}")
    return frozenset(each.lower() for each in names)


def _paths(table: FileTable, key: str, pattern: re.Pattern[str]) -> frozenset[str]:
    paths = table.texts(key, required=False)
    for each in paths:
        if not pattern.fullmatch(each):
            table.fault(key, f"has {quote(each)}, which must be a path such as /graphql")
    return frozenset(paths)


def _fields(table: FileTable, key: str) -> frozenset[str]:
    names = table.texts(key, required=False)
    for each in names:
        if not FIELD.fullmatch(each):
            table.fault(key, f"has {quote(each)}, which must be a name in letters, digits and '_'")
    return frozenset(names)


def _routes(table: FileTable, key: str) -> tuple[ToolRoute, ...]:
    routes = []
    for each in table.texts(key, required=False):
        found = ROUTE.fullmatch(each)
        if found is None:
            table.fault(
                key, f"has {quote(each)}, which must be a method or *, and a path, such as POST /users/{{id}}/keys"
            )
            continue
        segments = found[2][1:].split("/")
        routes.append(ToolRoute(found[1], tuple(None if part.startswith("{") else part for part in segments)))
    return tuple(routes)


def _aws(table: FileTable, description: ConnectorDescription) -> Mapping[str, AwsCalls]:
    inside = table.table("aws")
    if inside.values and (description.credential is None or "services" not in description.credential.settings):
        table.fault("aws", "is for a credential of the kind aws_sigv4 that has services")
    for name in inside.values:
        if not AWS_SERVICE.fullmatch(name):
            inside.fault(name, "must be the name of a service of AWS, such as sqs")
    return {name: _aws_calls(inside.table(name)) for name in inside.values}


def _aws_calls(table: FileTable) -> AwsCalls:
    reads, credentials = _matching(table, "reads", OPERATION), _matching(table, "credentials", OPERATION)
    # guard of own tools: an operation that returns a credential is never declared as a read
    #    -> connectors.kinds.http.test_own_tools.AwsTests.test_faults
    if reads & credentials:
        table.fault("reads", "must name no operation of `credentials`")
    found = AwsCalls(
        reads=reads,
        credentials=credentials,
        target=table.text("target", TextRule(TARGET.fullmatch, "must be a name in letters and digits"), required=False),
        varying=_matching(table, "varying", OPERATION),
        rest=table.flag("rest", default=False),
    )
    if found.rest and (reads or credentials or found.target):
        table.fault("rest", "must not stand beside operations")
    table.close()
    return found


def _matching(table: FileTable, key: str, pattern: re.Pattern[str]) -> frozenset[str]:
    names = table.texts(key, required=False)
    for each in names:
        if not pattern.fullmatch(each):
            table.fault(key, f"has {quote(each)}, which must be a name such as SendMessage")
    return frozenset(names)


def _templates(description: ConnectorDescription, operations: Mapping[str, HttpOperation]) -> Iterator[RequestTemplate]:
    """Yield the requests of the operations whose base URL has no variables."""
    for name, each in operations.items():
        base_url = description.base_url if each.place is None else description.places.get(each.place)
        if base_url is None or variables_in(base_url) or each.slashes or each.joined:
            continue
        base = read_base_url(base_url, exact=True)
        prefix = [part for part in base.path.split("/") if part]
        yield RequestTemplate(
            operation=name,
            effect=each.operation.effect,
            method=each.method,
            host=base.origin.host_and_port.removesuffix(":443"),
            segments=(*prefix, *each.segments),
            query=each.query,
            body_kind=each.body.kind if each.body else "",
            body=each.body.template if each.body else None,
        )
