"""The OpenAPI 3.1 document of a site, and a page that shows it, made from the site's endpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import TypeAlias, cast

from aileron.api.endpoint import EMPTY, Endpoint, Schema
from aileron.api.faults import JSON_TYPE
from aileron.api.guard import PROOF, Who
from aileron.base.json import JSON
from aileron.model.features import RelayedPath

from .schemas import COMPONENTS, ref, widened

Served: TypeAlias = Iterable[tuple[Endpoint, Who]]

_VARIABLE = re.compile(r"<(?:path:)?(\w+)>")
_FAILED: Mapping[str, JSON] = {
    "description": "The failure",
    "content": {"application/json": {"schema": ref("Failure")}},
}
_SCHEMES: Mapping[Who, tuple[str, ...]] = {
    Who.LAUNCH: ("launchKey",),
    Who.AGENT: ("agentToken",),
    Who.OPERATOR: ("operatorToken", "browser"),
    Who.SCRAPER: ("scraperToken",),
    Who.LOCAL: ("localKey",),
    Who.WATCHER: ("readingBrowser",),
}


def document(
    title: str,
    version: str,
    served: Served,
    relayed: Iterable[RelayedPath] = (),
    members: Callable[[str], Mapping[str, Schema]] = lambda _: {},
) -> dict[str, JSON]:
    """Return the whole OpenAPI document.

    :param served: each endpoint with the callers that this site allows.
    :param relayed: the paths that features serve instead of the site.
    :param members: returns the JSON members that features add to a component schema, by the schema's name.
    """
    paths: dict[str, dict[str, JSON]] = {}
    for endpoint, allowed in served:
        paths.setdefault(_plain(endpoint.path), {})[endpoint.method.lower()] = _operation(endpoint, allowed)
    for each in relayed:
        paths.setdefault(_plain(each.path), {})[each.method.lower()] = _describe_relayed(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": components(members), "securitySchemes": _security_schemes()},
    }


def components(members: Callable[[str], Mapping[str, Schema]]) -> dict[str, JSON]:
    """Return the component schemas of the OpenAPI document, with the JSON members that features add."""
    added = {name: members(name) for name in COMPONENTS}
    return {name: widened(schema, added[name]) if added[name] else schema for name, schema in COMPONENTS.items()}


def _plain(path: str) -> str:
    return _VARIABLE.sub(r"{\1}", path)


def _operation(endpoint: Endpoint, allowed: Who) -> dict[str, JSON]:
    answers = {str(status): _answer(schema) for status, schema in endpoint.answers.items()}
    operation: dict[str, JSON] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint)],
        "responses": {**answers, "default": _FAILED},
        "security": _security(allowed),
    }
    if endpoint.method != "GET":
        schema = endpoint.body.schema
        required = bool(schema.get("required"))
        operation["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return operation


def _describe_relayed(path: RelayedPath) -> JSON:
    """Return the description of a relayed path, whose input and answers the provider defines."""
    first, *others = path.providers
    whom = f"{first}, or to {others[0]} what its clients send" if others else first
    return {
        "operationId": f"relay_{path.method.lower()}_{_plain(path.path)}",
        "summary": f"Carried on to {whom}, and its answer back, as they are.",
        "tags": ["gateway"],
        "parameters": _path_parameters(path.path),
        "responses": {"default": {"description": "What the provider answers, or a refusal in the shape of its errors"}},
        "security": [{"gatewayKey": []}],
    }


def _answer(schema: Schema) -> JSON:
    return {"description": "Success", "content": {str(schema.get("contentMediaType", JSON_TYPE)): {"schema": schema}}}


def _path_parameters(path: str) -> list[JSON]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in _VARIABLE.findall(path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[JSON]:
    properties = cast("Mapping[str, JSON]", endpoint.query.schema["properties"])
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _security(allowed: Who) -> list[JSON]:
    return [{scheme: []} for who, schemes in _SCHEMES.items() if who in allowed for scheme in schemes]


def _security_schemes() -> dict[str, JSON]:
    bearers = {
        "launchKey": "ail_l_…",
        "localKey": "ail_c_…",
        "agentToken": "ail_a_…",
        "operatorToken": "ail_o_…",
        "scraperToken": "whose SHA-256 is metrics.token_sha256 in config.yaml",
    }
    return {
        **{name: {"type": "http", "scheme": "bearer", "description": text} for name, text in bearers.items()},
        "gatewayKey": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Aileron-Gateway-Key",
            "description": "Of the session, ail_g_…; before the path, /s/<key> says the same",
        },
        "browser": {
            "type": "apiKey",
            "in": "header",
            "name": PROOF,
            "description": "The signature of exactly this request, together with the browser's cookie",
        },
        "readingBrowser": {
            "type": "apiKey",
            "in": "header",
            "name": PROOF,
            "description": "The same, of a browser whose login may no longer decide",
        },
    }


def page(title: str, served: Served) -> str:
    """Return the document as one page without scripts: every route with its input and answers."""
    rows = "".join(_row(endpoint, allowed) for endpoint, allowed in served)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head><body>'
        f'<h1>{escape(title)}</h1><p>The same as a document: <a href="/v1/openapi.json">OpenAPI 3.1</a>.</p>'
        "<table><thead><tr><th>Route</th><th>Who</th><th>What</th><th>Takes</th><th>Answers</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></body></html>"
    )


def _row(endpoint: Endpoint, allowed: Who) -> str:
    who = ", ".join(each.name.lower() for each in Who if each in allowed and each.name)
    cells = [
        f"<code>{escape(endpoint.method)} {escape(_plain(endpoint.path))}</code>",
        escape(who),
        escape(endpoint.summary),
        _members("query", endpoint.query.schema) + _members("body", endpoint.body.schema),
        escape(", ".join(str(status) for status in endpoint.answers)),
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _members(what: str, schema: Schema) -> str:
    if schema == EMPTY:
        return ""
    needed, names = cast("list[str]", schema["required"]), cast("Mapping[str, JSON]", schema["properties"])
    shown = (f"<b>{escape(name)}</b>" if name in needed else escape(name) for name in names)
    return f"<div>{what}: {', '.join(shown)}</div>"
