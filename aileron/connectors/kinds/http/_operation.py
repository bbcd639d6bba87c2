"""Reads one operation of a connector file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from attrs import evolve

from aileron.base.tables import ANY_TEXT, FileTable, quote
from aileron.connectors._answer import DEFAULT_MAX_RESPONSE_BYTES, MOST_RESPONSE_BYTES
from aileron.connectors._headers import header_name, header_value
from aileron.connectors._operations import read_declared
from aileron.connectors._template import REFERENCE, Template, check_references, inputs_of
from aileron.credentials import KINDS
from aileron.model.connectors import READ, WRITE, CredentialNeed, Operation

from ._joined import read_joined
from ._lookup import read_lookup
from ._mail import read_mail
from ._multipart import FILE, MULTIPART, read_upload
from ._pages import read_pages
from ._result import has_attachments, read_answer_headers, read_parts, read_precondition
from ._spec import (
    DEFAULT_TIMEOUT_SECONDS,
    MOST_ATTACHED_BYTES,
    MOST_TIMEOUT_SECONDS,
    ErrorRule,
    HttpOperation,
    RequestBody,
)
from ._when import condition, dotted

BODIES = ("json", "graphql", "form", "text", "mail", MULTIPART, FILE)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
BODIES_OF = {"GET": ("json",), "HEAD": ()}
"""The bodies that some methods can have: others, all."""
AUTO = "auto"
ANSWERS = ("json", "xml", "text", "file", "none", AUTO)
REDIRECTS = ("never", "same-origin")
REFUSED = (300, 599)
_LEAST_ERROR = 400
FAULTS = ("external_api_error", "binding_failed")
_NAMED = ("json", "xml")
_NO_SLASHES = "names {}, which is not an input of the path"
_LITERAL = re.compile(r"[A-Za-z0-9_.~!$&'()*+,;=:@-]+|%[0-9A-Fa-f]{2}")


def read_operation(
    name: str, table: FileTable, credential: CredentialNeed | None, places: Collection[str] = ()
) -> HttpOperation:
    """Read the table of one operation. Faults are added to the table.

    :param credential: its header and parameter may not be set by the operation.
    :param places: the names of other hosts.
    """
    method = table.choice("method", METHODS)
    effect = table.choice("effect", (READ, WRITE), WRITE)
    segments, query = _path(table), _query(table, credential)
    headers, body = _header_templates(table, credential), _body(table, method)
    answer = table.choice("answer", ANSWERS, "json")
    result = read_parts(table.optional_table("result"))
    error = _error(table.table("error"))
    inputs = inputs_of(*segments, query, headers, body.template if body else None)
    lookup = read_lookup(table.optional_table("reconcile"), inputs)
    operation = HttpOperation(
        operation=evolve(
            _declared(name, table, effect, inputs, reconcilable=lookup is not None),
            scopes=_scopes(table, credential),
            lookup=None if lookup is None else lookup.operation,
        ),
        method=method,
        segments=segments,
        query=query,
        headers=headers,
        body=body,
        answer=answer,
        error=error,
        result=result,
        refused=_refused(table, effect),
        follows=_follows(table, method, effect),
        max_response_bytes=table.integer("max_response_bytes", 1, MOST_RESPONSE_BYTES) or DEFAULT_MAX_RESPONSE_BYTES,
        inputs=inputs,
        lookup=lookup,
        answer_headers=read_answer_headers(table, effect, () if answer == "none" else result),
        pages=read_pages(table, body.template if body and body.kind in ("json", "graphql") else None, query, result),
        place=table.choice("host", places, "") or None,
        slashes=frozenset(table.some("slashes", inputs_of(*segments), _NO_SLASHES)),
        lists=frozenset(table.texts("lists", required=False)),
        optional_body=table.flag("optional_body", default=False),
        joined=read_joined(table, _flat_inputs(segments, query, headers, body)),
    )
    _check_answer(table, operation)
    table.close()
    return operation


def _flat_inputs(
    segments: Sequence[str], query: Mapping[str, Template], headers: Mapping[str, str], body: RequestBody | None
) -> frozenset[str]:
    """Return the inputs that become text: those of the path, the query, the headers and a form body."""
    return inputs_of(*segments, query, headers, body.template if body and body.kind == "form" else None)


def _check_answer(table: FileTable, operation: HttpOperation) -> None:
    """Check that the declarations about the response are consistent with its form. Faults are added to the table."""
    answer, result, error = operation.answer, operation.result, operation.error
    if operation.is_graphql and error.when is None:
        table.fault("error", "must say `when`: a failure in GraphQL has the status 200")
    if answer == "file" and operation.max_response_bytes > MOST_ATTACHED_BYTES:
        table.fault("max_response_bytes", f"must be at most {MOST_ATTACHED_BYTES} for a file")
    if operation.lookup is not None and operation.operation.effect == READ:
        table.fault("reconcile", "is for what has an effect")
    named = result is not None or error.when is not None or (error.message is not None and answer != AUTO)
    if answer not in _NAMED and named:
        table.fault("answer", "must be json or xml where parts of the answer are named")
    if operation.optional_body and operation.body is None:
        table.fault("optional_body", "is for an operation that has a body")
    if answer != "xml" and operation.lists:
        table.fault("lists", "is for an answer that is xml")
    if operation.operation.output_schema is not None and (answer == "file" or has_attachments(result)):
        table.fault("output", "is for an answer without attachments")


def _refused(table: FileTable, effect: str) -> frozenset[int]:
    """Return the statuses that C{refused} declares to mean that nothing happened. A read may not include redirects.

    Faults are added to the table.
    """
    statuses = table.integers("refused", *REFUSED)
    if effect == READ and any(status < _LEAST_ERROR for status in statuses):
        table.fault("refused", "has a redirect, which is for what has an effect")
    return statuses


def _declared(name: str, table: FileTable, effect: str, inputs: Collection[str], *, reconcilable: bool) -> Operation:
    """Return the declaration of the operation that all kinds of connector share. Faults are added to the table."""
    return evolve(
        read_declared(
            name,
            table,
            effect,
            most_seconds=MOST_TIMEOUT_SECONDS,
            usual_seconds=DEFAULT_TIMEOUT_SECONDS,
            inputs=inputs,
        ),
        precondition=read_precondition(table, inputs, effect),
        reconcilable=reconcilable,
    )


def _path(table: FileTable) -> tuple[str, ...]:
    path = table.text("path")
    if not path:
        return ()
    if not path.startswith("/"):
        table.fault("path", "must begin with a slash")
        return ()
    check_references(table, "path", path)
    segments = tuple(path[1:].split("/"))
    for at, each in enumerate(segments):
        last = at == len(segments) - 1
        if not _is_segment(each) and not (last and not each):
            table.fault("path", f"has a segment {each!r}, which must be references and encoded text")
    return segments


def _is_segment(segment: str) -> bool:
    """Return whether a segment consists of URL-encoded text and references."""
    between = REFERENCE.split(segment)[::2]
    return (
        _is_literal(segment) if len(between) == 1 else all(not each or not _LITERAL.sub("", each) for each in between)
    )


def _is_literal(segment: str) -> bool:
    return segment not in {"", ".", ".."} and not _LITERAL.sub("", segment)


def _query(table: FileTable, credential: CredentialNeed | None) -> Mapping[str, Template]:
    query = _templates(table, "query")
    if credential is not None and credential.query in query:
        table.fault("query", f"has {quote(credential.query or '')}, which is the credential's parameter")
    return query


def _templates(table: FileTable, key: str) -> Mapping[str, Template]:
    inside = table.table(key)
    for name, value in inside.values.items():
        if isinstance(value, dict):
            inside.fault(name, "must be a text, a number, a boolean or an array of them")
        else:
            check_references(inside, name, inside.json(name))
    return dict(inside.values)


def _header_templates(table: FileTable, credential: CredentialNeed | None) -> Mapping[str, str]:
    inside = table.table("headers")
    filled = set() if credential is None else {credential.header.lower(), *KINDS[credential.kind].reserved}
    for name in inside.values:
        value = inside.text(name, ANY_TEXT)
        try:
            header_name(name)
            header_value(value)
        except ValueError as error:
            inside.fault(name, str(error))
        if name.lower() in filled:
            inside.fault(name, "is the credential's header")
        check_references(inside, name, value)
    if len({name.lower() for name in inside.values}) < len(inside.values):
        table.fault("headers", "names one header twice")
    return dict(inside.values)


def _body(table: FileTable, method: str) -> RequestBody | None:
    given = [key for key in BODIES if key in table.values]
    table.skip(*given)
    if len(given) > 1:
        table.fault(given[1], f"must not stand beside {given[0]}")
    if given and given[0] not in BODIES_OF.get(method, BODIES):
        table.fault(given[0], f"must not stand with {method}")
    if not given:
        return None
    return RequestBody(given[0], _body_template(table, given[0]))


def _body_template(table: FileTable, kind: str) -> Template:
    if kind in (MULTIPART, FILE):
        if "content-type" in {name.lower() for name in table.table("headers").values}:
            table.fault("headers", f"must not say the Content-Type, which follows from {kind}")
        return read_upload(table, kind)
    if kind == "form":
        return _templates(table, kind)
    if kind == "graphql":
        return _graphql(table)
    template = read_mail(table.table(kind)) if kind == "mail" else _plain_template(table, kind)
    check_references(table, kind, template)
    return template


def _plain_template(table: FileTable, kind: str) -> Template:
    return table.text(kind, ANY_TEXT) if kind == "text" else table.json(kind)


def _graphql(table: FileTable) -> Template:
    """Return a query and its variables. The query may contain no reference. Faults are added to the table."""
    inside = table.table("graphql")
    query, variables = inside.text("query"), inside.object("variables") or {}
    if "${" in query:
        inside.fault("query", "must have no reference: put inputs into `variables`")
    check_references(inside, "variables", variables)
    inside.close()
    return {"query": query, "variables": variables}


def _error(table: FileTable) -> ErrorRule:
    rule = ErrorRule(
        when=table.read("when", condition, None),
        kind=table.choice("class", FAULTS, "external_api_error"),
        message=table.read("message", dotted, None),
    )
    table.close()
    return rule


def _scopes(table: FileTable, credential: CredentialNeed | None) -> tuple[str, ...]:
    """Return the scopes that the operation needs, which must be among the credential's.

    Faults are added to the table.
    """
    asked = () if credential is None else credential.settings.get("scopes", "").split()
    return table.some("scopes", asked, "has {}, which the scopes of [credential] do not list")


def _follows(table: FileTable, method: str, effect: str) -> bool:
    follows = table.choice("redirect", REDIRECTS, "never") == "same-origin"
    if follows and (method != "GET" or effect != READ):
        table.fault("redirect", "may be followed only by a GET whose effect is read")
    return follows
