"""Counts what an import loses in silence: arguments of a document that neither an input nor a mark has.

It walks the document by itself, and knows nothing of how the importer reads one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from aileron.connectors.kinds.http import HttpSpec
from aileron.features.importing.description import ApiDescription, ApiOperation, OperationSummary
from aileron.model.actions import Action

_UNHEARD = ("accept", "authorization", "content-type")
"""Headers that mean nothing in a document, as OpenAPI says."""
_BODY = "its body"
_WHOLE = ("file", "text")
"""Bodies that are given as they are sent, with whatever members."""
_ITEMS = re.compile(r"[,;:\s]+")
_WORDS = re.compile(r"[^A-Za-z0-9]+")


def silent_losses(
    root: Mapping[str, Any], summary: OperationSummary, described: ApiDescription, marks: str
) -> list[str]:
    """List what is lost of one operation without a mark.

    :param described: as the importer describes it, alone.
    :param marks: all that the import says of it, in one text.
    """
    (found,) = described.operations
    keys = described.credential.keys if described.credential else {}
    own = {str(keys.get(key, "")).lower() for key in ("header", "query")}
    item = _follow(root, root["paths"][summary.path])
    operation = item[summary.method.lower()]
    given = {step for each in found.parameters for step in each.steps}
    given |= {name for each in found.parameters if not each.steps for name in _named(each.schema)}
    has_body = bool(found.body)
    items = _ITEMS.split(marks)
    told = {_plain(each) for item in items for each in (item, item.partition("[")[0])}
    lost = [
        f"{place} {name}"
        for place, name in _described(root, item, operation)
        if not (name == _BODY and has_body)
        and name.lower() not in own
        and not any(step == name or step.startswith(f"{name}[") for step in given)
        and _plain(name) not in told
        and not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", marks)
        and not (place == "body" and (_BODY in marks or found.body in _WHOLE))
    ]
    return [each for each in lost if not _is_our_own(each, found)]


def unreached(action: Action, spec: HttpSpec, operation: str) -> list[str]:
    """List the inputs of an action that reach no part of its request."""
    handed = {name for step in action.steps for name in step.inputs}
    return [
        each.name
        for each in action.inputs
        if each.name not in handed or each.name not in spec.operations[operation].inputs
    ]


def _named(schema: Any, levels: int = 8) -> Iterator[str]:
    """Yield the names of the members that a schema of an input describes, however deep."""
    if isinstance(schema, Mapping) and levels:
        yield from schema.get("properties") or ()
        for each in (
            *(schema.get("properties") or {}).values(),
            *(schema.get("anyOf") or ()),
            *(schema.get("oneOf") or ()),
        ):
            yield from _named(each, levels - 1)


def _is_our_own(lost: str, found: ApiOperation) -> bool:
    """Tell whether the connector fills it itself: a key against repetition, or its credential."""
    place, _, name = lost.partition(" ")
    headers = found.extra.get("headers")
    own = {each.lower() for each in headers} if isinstance(headers, Mapping) else set()
    return place == "header" and name.lower() in own


def _described(
    root: Mapping[str, Any], item: Mapping[str, Any], operation: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the arguments of an operation: place and name."""
    named: dict[tuple[str, str], Mapping[str, Any]] = {}
    for value in (*item.get("parameters", ()), *operation.get("parameters", ())):
        parameter = _follow(root, value)
        named[parameter.get("in", ""), parameter.get("name", "")] = parameter
    for (place, name), parameter in named.items():
        if place == "header" and name.lower() in _UNHEARD:
            continue
        members = set(_members(root, parameter.get("schema", {}))) if place == "query" else set()
        if members and parameter.get("style", "form") == "form" and parameter.get("explode") is not False:
            yield from ((place, each) for each in members)
        else:
            yield place, name
    body = _follow(root, operation.get("requestBody", {}))
    content = body.get("content", {})
    if body and content:
        chosen = next((each for name, each in content.items() if "json" in name), next(iter(content.values())))
        schema = _follow(root, chosen.get("schema", {}))
        members = set(_members(root, schema))
        if not members and schema.get("properties") == {} and not schema.get("additionalProperties"):
            return  # an object without members: there is nothing to give
        yield from (("body", each) for each in members or {_BODY})


def _members(root: Mapping[str, Any], schema: Any, levels: int = 6) -> Iterator[str]:
    """Yield the names of the members of an object that are not read only, those of its alternatives as well."""
    node = _follow(root, schema)
    if not levels or node.get("type", "object") not in ("object", ["object", "null"]):
        return
    for name, each in (node.get("properties") or {}).items():
        if not any(isinstance(one, Mapping) and one.get("readOnly") is True for one in (each, _follow(root, each))):
            yield name
    for key in ("allOf", "oneOf", "anyOf"):
        for each in node.get(key) or ():
            yield from _members(root, each, levels - 1)


def _follow(root: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    for _ in range(16):
        if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
            break
        found: Any = root
        for part in value["$ref"].removeprefix("#/").split("/"):
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdigit() and int(name) < len(found):
                found = found[int(name)]
            else:
                found = found.get(name, {}) if isinstance(found, Mapping) else {}
        value = found
    return value if isinstance(value, Mapping) else {}


def _plain(text: str) -> str:
    return _WORDS.sub("", text).lower() or text
