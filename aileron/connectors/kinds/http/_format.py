"""The JSON Schema of connector files of the kind C{http}."""

from __future__ import annotations

import re
from typing import Any

from aileron.connectors import _operations
from aileron.connectors._answer import MOST_RESPONSE_BYTES
from aileron.connectors._forwarding import SERVICE
from aileron.connectors._json_schema import (
    ANY_TEXT,
    EFFECTS,
    FLAG,
    PRESENT,
    TEXT,
    TEXTS,
    Schema,
    choice,
    credential_of,
    number,
    one_of,
    operations,
    places,
    presentation,
    service_head,
    statuses,
    table,
    tables,
    without,
)
from aileron.connectors.packages import PACKAGE_FORMS
from aileron.credentials import KINDS
from aileron.model.connectors import READ
from aileron.model.own_tools import ERROR_FORMS

from . import _lookup, _mail, _multipart, _operation, _own_tools, _pages, _result, _spec, _when

_DOTTED: Schema = {"type": "string", "pattern": rf"^{_when.PATH}$"}
_VALUES: Schema = {"type": "object", "additionalProperties": {"not": {"type": "object"}}}


def _part(*more: str) -> Schema:
    """Return the schema of a file in an upload, or of an attachment in a result."""
    return table(
        dict.fromkeys(("media_type", "base64", "text", *more), TEXT),
        ("media_type", *more),
        **one_of(("base64", "text")),
    )


def _pages_of(kind: str) -> Schema:
    properties: Schema = {
        "kind": {"const": kind},
        "items": _DOTTED,
        "parameter": TEXT,
        "until": TEXT,
        "most_pages": number("integer", 1, _pages.MOST_PAGES),
        "most_items": number("integer", 1, _pages.MOST_ITEMS),
        "more": TEXT,
        **({"cursor": _DOTTED} if kind == _pages.CURSOR else {}),
        **({"size": TEXT} if kind in (_pages.PAGE, _pages.OFFSET) else {}),
        **({"first": number("integer", 0, 1)} if kind == _pages.PAGE else {}),
    }
    required = ["kind", *([] if kind == _pages.LINK else ["parameter"]), *(["cursor"] if kind == _pages.CURSOR else [])]
    return table(properties, required)


def _reconcile() -> Schema:
    properties = {
        "op": TEXT,
        "inputs": {"type": "object"},
        "items": _DOTTED,
        "match": TEXT,
        "result": {"$ref": "#/$defs/result"},
        "absent": choice(_lookup.ABSENCES),
        "after_seconds": number("number", _lookup.LEAST_AFTER_SECONDS, _lookup.MOST_AFTER_SECONDS),
        "complete": TEXT,
        "absent_statuses": statuses(400, 499),
    }
    return table(properties, ("op",))


def _bodies() -> Schema:
    query = {"type": "string", "not": {"pattern": r"\$\{"}, "pattern": r"\S"}
    lone = [table({key: TEXT}, (key,)) for key in (_multipart.FILES, _multipart.JSON_PART)]
    parts = {"anyOf": [TEXT, _part("filename"), *lone]}
    file = table(dict.fromkeys(_multipart.KEYS, TEXT), ("media_type",), **one_of(("base64", "text")))
    return {
        "json": {},
        "graphql": table({"query": query, "variables": {"type": "object"}}, ("query",)),
        "form": _VALUES,
        "text": ANY_TEXT,
        "mail": table(dict.fromkeys(_mail.PARTS, ANY_TEXT), ("to", "text")),
        "multipart": {"type": "object", "minProperties": 1, "additionalProperties": parts},
        "file": file,
    }


def _operation_table() -> Schema:
    error = {"when": TEXT, "class": choice(_operation.FAULTS), "message": _DOTTED}
    properties: Schema = {
        "description": ANY_TEXT,
        "host": TEXT,
        "method": choice(_operation.METHODS),
        "path": {"type": "string", "pattern": "^/"},
        "slashes": TEXTS,
        "lists": TEXTS,
        "scopes": TEXTS,
        "query": _VALUES,
        "headers": {"type": "object", "additionalProperties": ANY_TEXT},
        **_bodies(),
        "effect": choice(EFFECTS),
        "destructive": FLAG,
        "irreversible": FLAG,
        "output": {"type": "object"},
        "idempotent": FLAG,
        "answer": choice(_operation.ANSWERS),
        "result": {"$ref": "#/$defs/result"},
        "error": table(error),
        "refused": statuses(*_operation.REFUSED),
        "precondition": TEXTS,
        "answer_headers": {"type": "object", "maxProperties": _result.MOST_HEADERS, "additionalProperties": TEXT},
        "redirect": choice(_operation.REDIRECTS),
        "optional_body": FLAG,
        "joined": tables(
            _operations.NAME.pattern, table(dict.fromkeys(("before", "between", "pair"), ANY_TEXT), ("between",))
        ),
        "max_response_bytes": number("integer", 1, MOST_RESPONSE_BYTES),
        "timeout_seconds": number("number", _operations.LEAST_SECONDS, _spec.MOST_TIMEOUT_SECONDS),
        "reconcile": _reconcile(),
        "present": PRESENT,
        "pages": {"oneOf": [_pages_of(kind) for kind in _pages.KINDS]},
    }
    reads = {"required": ["effect"], "properties": {"effect": {"const": READ}}}
    judged = {"required": ["error"], "properties": {"error": {"required": ["when"]}}}
    one_body: list[Schema] = [{"required": [body]} for body in _operation.BODIES]
    rules = [
        {"oneOf": [*one_body, without(*_operation.BODIES)]},
        *(
            {
                "if": {"properties": {"method": {"const": method}}, "required": ["method"]},
                "then": without(*(each for each in _operation.BODIES if each not in bodies)),
            }
            for method, bodies in _operation.BODIES_OF.items()
        ),
        {"if": {"required": ["graphql"]}, "then": judged},
        {"if": reads, "then": without("reconcile", "precondition"), "else": without("pages", "answer_headers")},
    ]
    return table(properties, ("method", "path"), allOf=rules)


def _whole(pattern: re.Pattern[str]) -> Schema:
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$"}


def _own_tools_table() -> Schema:
    def array(pattern: re.Pattern[str], **more: Any) -> Schema:
        return {"type": "array", "items": _whole(pattern), **more}

    names = array(_own_tools.OPERATION)
    aws = {
        **dict.fromkeys(("reads", "credentials", "varying"), names),
        "target": _whole(_own_tools.TARGET),
        "rest": FLAG,
    }
    variables = tables(_own_tools.VARIABLE.pattern, _whole(_own_tools.PLACEHOLDER), minProperties=1)
    routes = dict.fromkeys(("reads", "credentials", "refused"), array(_own_tools.ROUTE))
    properties: Schema = {
        "service": _whole(SERVICE),
        "hosts": TEXTS,
        "variables": variables,
        "headers": {**TEXTS, "minItems": 1},
        "varying": TEXTS,
        "paths": array(_own_tools.PATH),
        "graphql": array(_own_tools.GRAPHQL_PATH),
        **routes,
        "credential_fields": array(_own_tools.FIELD),
        "hidden": array(_own_tools.FIELD),
        "packages": choice(PACKAGE_FORMS),
        "errors": choice(ERROR_FORMS),
        "aws": tables(_own_tools.AWS_SERVICE.pattern, table(aws)),
        "raw": choice(_own_tools.RAW),
        "get": choice(_own_tools.GET),
    }
    return table(properties, ("service", "variables", "headers"))


def make_schema() -> Schema:
    """Return the JSON Schema of connector files of the kind C{http}."""
    root = {
        "connector": service_head("http", traced=FLAG),
        **places(),
        "credential": {"oneOf": [credential_of(kind) for kind in KINDS.values() if kind.name != "ssh_key"]},
        "own_tools": _own_tools_table(),
        "operations": operations(_operation_table(), minProperties=1),
    }
    result = {"type": "object", "additionalProperties": {"anyOf": [_DOTTED, _part()]}}
    return {**table(root, ("connector", "operations")), "$defs": {"result": result, **presentation()}}
