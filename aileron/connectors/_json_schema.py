"""Parts of the JSON Schema of connector files, built from the tables and limits of the parsers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from aileron.credentials import CredentialKind, SettingRule
from aileron.model.actions import SEMVER
from aileron.model.connectors import PRESENTATIONS, READ, WRITE
from aileron.model.places import MOST_PATTERN_CHARACTERS
from aileron.model.titles import MOST_TITLE

from . import _operations, _places
from ._identity import CONNECTOR_NAME, USUAL_KIND

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "pattern": r"\S"}
ANY_TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
EFFECTS = (READ, WRITE)
FOUND = ("discover", "client_metadata_url")
"""Settings of a credential that only a connector to an MCP server has."""


def choice(options: Iterable[str]) -> Schema:
    return {"enum": list(options)}


def number(kind: str, low: float, high: float) -> Schema:
    return {"type": kind, "minimum": low, "maximum": high}


def statuses(low: int, high: int) -> Schema:
    return {"type": "array", "items": number("integer", low, high)}


def table(properties: Schema, required: Collection[str] = (), **more: Any) -> Schema:
    made = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {**made, "required": list(required)} if required else made


def tables(name: str, one: Schema, **more: Any) -> Schema:
    return {"type": "object", "propertyNames": {"pattern": f"^{name}$"}, "additionalProperties": one, **more}


def one_of(keys: Iterable[str]) -> Schema:
    """Return a schema of objects that must have exactly one of these keys."""
    return {"oneOf": [{"required": [key]} for key in keys]}


def without(*keys: str) -> Schema:
    return {"properties": dict.fromkeys(keys, False)}


def head_of(kind: str, more: Schema, required: Collection[str] = ()) -> Schema:
    """Return the schema of the table C{[connector]} of one kind."""
    properties = {
        "name": {"type": "string", "pattern": rf"^(?:{CONNECTOR_NAME})$"},
        "version": {"type": "string", "pattern": rf"^(?:{SEMVER})$"},
        "description": ANY_TEXT,
        "kind": {"const": kind},
        **more,
    }
    return table(properties, ("name", "version", *([] if kind == USUAL_KIND else ["kind"]), *required))


PRESENT: Schema = {"$ref": "#/$defs/present"}
"""The schema of the table C{present} of an operation, by its place in L{presentation}."""


def presentation() -> Schema:
    """Return the schema of the table C{present}, as an entry of C{$defs} to which L{PRESENT} refers."""
    return {"present": {"oneOf": [_presented(kind, parts) for kind, parts in PRESENTATIONS.items()]}}


def _presented(kind: str, parts: Collection[str]) -> Schema:
    shown = {"anyOf": [TEXT, {**TEXTS, "minItems": 1}]}
    line = {"type": "string", "minLength": 1, "maxLength": MOST_TITLE}
    headline = {"anyOf": [line, {"type": "array", "items": line, "minItems": 1}]}
    properties = {"kind": {"const": kind}, _operations.HEADLINE: headline, **dict.fromkeys(parts, shown)}
    return table(properties, ("kind",), minProperties=2)


def service_head(kind: str, **others: Schema) -> Schema:
    base_url = table({"default": TEXT, "bindable": FLAG})
    base_url["anyOf"] = [
        {"required": ["default"]},
        {"properties": {"bindable": {"const": True}}, "required": ["bindable"]},
    ]
    more = {"base_url": {"anyOf": [TEXT, base_url]}, "hosts": TEXTS, "private_network": FLAG, **others}
    return head_of(kind, more, ("base_url",))


def variable() -> Schema:
    pattern = {**TEXT, "maxLength": MOST_PATTERN_CHARACTERS}
    properties = {"title": TEXT, "pattern": pattern, "example": TEXT, "default": TEXT}
    return table(properties, ("title", "pattern", "example"))


def places() -> Schema:
    """Return the schemas of the tables C{[variables]} and C{[hosts]}."""
    return {
        "variables": tables(_places.NAME.pattern, variable()),
        "hosts": tables(_places.NAME.pattern, TEXT),
    }


def operations(one: Schema, **more: Any) -> Schema:
    """Return the schema of the tables C{[operations.…]}."""
    return tables(_operations.NAME.pattern, one, **more)


def _setting(rule: SettingRule) -> Schema:
    return FLAG if rule.flag else TEXTS if rule.several else TEXT


def credential_of(kind: CredentialKind, more: Collection[str] = ()) -> Schema:
    """Return the schema of a kind of credential.

    :param more: settings that only some kinds of connector have.
    """
    rules = {name: rule for name, rule in kind.settings.items() if name not in FOUND or name in more}
    properties: Schema = {"kind": {"const": kind.name}}
    properties |= {name: _setting(rule) for name, rule in rules.items()}
    if not kind.placed:
        return table(properties, ["kind"])
    made = table({**properties, "header": TEXT, "format": {"type": "string", "pattern": r"\{key\}"}}, ["kind"])
    in_url = [key for key in ("query", "path") if key in rules]
    if in_url:
        elsewhere = {key: {"header", "format", *in_url} - {key} for key in in_url}
        made["oneOf"] = [{"required": [key], **without(*sorted(others))} for key, others in elsewhere.items()]
        made["oneOf"].append({"required": ["header"] if not kind.header else [], **without(*in_url)})
    return made
