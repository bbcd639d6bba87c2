"""The JSON Schema of connector files, made of the tables and limits by which the reader itself goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from aileron.connectors import _operations, _places, _schema
from aileron.connectors.kinds.command import _environment
from aileron.connectors.kinds.command import _spec as _command
from aileron.connectors.kinds.http import _lookup, _mail, _multipart, _operation, _pages, _result, _spec, _when
from aileron.connectors.kinds.mail import spec as _account
from aileron.connectors.kinds.mcp import _spec as _server_file
from aileron.credentials import KINDS, CredentialKind, SettingRule, SshKey
from aileron.model.actions import SEMVER
from aileron.model.connectors import PRESENTATIONS, READ, WRITE
from aileron.model.places import MOST_PATTERN_CHARACTERS

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "pattern": r"\S"}
_ANY_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_DOTTED: Schema = {"type": "string", "pattern": rf"^{_when.PATH}$"}
_VALUES: Schema = {"type": "object", "additionalProperties": {"not": {"type": "object"}}}
_EFFECT = (READ, WRITE)
_FOUND = ("discover", "client_metadata_url")
"""Settings of a connector to an MCP server."""


def _choice(options: Iterable[str]) -> Schema:
    return {"enum": list(options)}


def _number(kind: str, low: float, high: float) -> Schema:
    return {"type": kind, "minimum": low, "maximum": high}


def _statuses(low: int, high: int) -> Schema:
    return {"type": "array", "items": _number("integer", low, high)}


def _table(properties: Schema, required: Collection[str] = (), **more: Any) -> Schema:
    made = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {**made, "required": list(required)} if required else made


def _tables(name: str, one: Schema, **more: Any) -> Schema:
    return {"type": "object", "propertyNames": {"pattern": f"^{name}$"}, "additionalProperties": one, **more}


def _one_of(keys: Iterable[str]) -> Schema:
    """Exactly one of them."""
    return {"oneOf": [{"required": [key]} for key in keys]}


def _without(*keys: str) -> Schema:
    return {"properties": dict.fromkeys(keys, False)}


def _head(kind: str, more: Schema, required: Collection[str] = ()) -> Schema:
    """The table C{[connector]} of one kind of connector."""
    properties = {
        "name": {"type": "string", "pattern": rf"^(?:{_schema.NAME})$"},
        "version": {"type": "string", "pattern": rf"^(?:{SEMVER})$"},
        "description": _ANY_TEXT,
        "kind": {"const": kind},
        **more,
    }
    return _table(properties, ("name", "version", *([] if kind == _schema.HTTP else ["kind"]), *required))


def _connector(kind: str) -> Schema:
    base_url = _table({"default": _TEXT, "bindable": _FLAG})
    base_url["anyOf"] = [
        {"required": ["default"]},
        {"properties": {"bindable": {"const": True}}, "required": ["bindable"]},
    ]
    more = {"base_url": {"anyOf": [_TEXT, base_url]}, "hosts": _TEXTS, "private_network": _FLAG}
    return _head(kind, more, ("base_url",))


def _variable() -> Schema:
    pattern = {**_TEXT, "maxLength": MOST_PATTERN_CHARACTERS}
    properties = {"title": _TEXT, "pattern": pattern, "example": _TEXT, "default": _TEXT}
    return _table(properties, ("title", "pattern", "example"))


def _setting(rule: SettingRule) -> Schema:
    return _FLAG if rule.flag else _TEXTS if rule.several else _TEXT


def _found_credential() -> Schema:
    """OAuth 2 of a server that may say where one signs in."""
    made = _credential(KINDS["oauth2"], _FOUND)
    finds = {"properties": {"discover": {"const": True}}, "required": ["discover"]}
    named = _without("token_url", "authorize_url", "device_url")
    return {**made, "if": finds, "then": named, "else": _without("client_metadata_url")}


def _credential(kind: CredentialKind, more: Collection[str] = ()) -> Schema:
    """A credential of a kind.

    :param more: settings that not every kind of connector has.
    """
    rules = {name: rule for name, rule in kind.settings.items() if name not in _FOUND or name in more}
    properties: Schema = {"kind": {"const": kind.name}}
    properties |= {name: _setting(rule) for name, rule in rules.items()}
    if not kind.placed:
        return _table(properties, ["kind"])
    made = _table({**properties, "header": _TEXT, "format": {"type": "string", "pattern": r"\{key\}"}}, ["kind"])
    in_url = [key for key in ("query", "path") if key in rules]
    if in_url:
        elsewhere = {key: {"header", "format", *in_url} - {key} for key in in_url}
        made["oneOf"] = [{"required": [key], **_without(*sorted(others))} for key, others in elsewhere.items()]
        made["oneOf"].append({"required": ["header"] if not kind.header else [], **_without(*in_url)})
    return made


def _present(kind: str, parts: Collection[str]) -> Schema:
    shown = {"anyOf": [_TEXT, {**_TEXTS, "minItems": 1}]}
    return _table({"kind": {"const": kind}, **dict.fromkeys(parts, shown)}, ("kind",), minProperties=2)


def _part(*more: str) -> Schema:
    """A file of an upload, or an attachment of a result."""
    return _table(
        dict.fromkeys(("media_type", "base64", "text", *more), _TEXT),
        ("media_type", *more),
        **_one_of(("base64", "text")),
    )


def _pages_of(kind: str) -> Schema:
    properties: Schema = {
        "kind": {"const": kind},
        "items": _DOTTED,
        "parameter": _TEXT,
        "until": _TEXT,
        "most_pages": _number("integer", 1, _pages.MOST_PAGES),
        "most_items": _number("integer", 1, _pages.MOST_ITEMS),
        "more": _TEXT,
        **({"cursor": _DOTTED} if kind == _pages.CURSOR else {}),
        **({"size": _TEXT} if kind in (_pages.PAGE, _pages.OFFSET) else {}),
        **({"first": _number("integer", 0, 1)} if kind == _pages.PAGE else {}),
    }
    required = ["kind", *([] if kind == _pages.LINK else ["parameter"]), *(["cursor"] if kind == _pages.CURSOR else [])]
    return _table(properties, required)


def _reconcile() -> Schema:
    properties = {
        "op": _TEXT,
        "inputs": {"type": "object"},
        "items": _DOTTED,
        "match": _TEXT,
        "result": {"$ref": "#/$defs/result"},
        "absent": _choice(_lookup.ABSENCES),
        "after_seconds": _number("number", _lookup.LEAST_AFTER_SECONDS, _lookup.MOST_AFTER_SECONDS),
        "complete": _TEXT,
        "absent_statuses": _statuses(400, 499),
    }
    return _table(properties, ("op",))


def _bodies() -> Schema:
    query = {"type": "string", "not": {"pattern": r"\$\{"}, "pattern": r"\S"}
    lone = [_table({key: _TEXT}, (key,)) for key in (_multipart.FILES, _multipart.JSON_PART)]
    parts = {"anyOf": [_TEXT, _part("filename"), *lone]}
    file = _table(dict.fromkeys(_multipart.KEYS, _TEXT), ("media_type",), **_one_of(("base64", "text")))
    return {
        "json": {},
        "graphql": _table({"query": query, "variables": {"type": "object"}}, ("query",)),
        "form": _VALUES,
        "text": _ANY_TEXT,
        "mail": _table(dict.fromkeys(_mail.PARTS, _ANY_TEXT), ("to", "text")),
        "multipart": {"type": "object", "minProperties": 1, "additionalProperties": parts},
        "file": file,
    }


def _operation_table() -> Schema:
    error = {"when": _TEXT, "class": _choice(_operation.FAULTS), "message": _DOTTED}
    properties: Schema = {
        "description": _ANY_TEXT,
        "host": _TEXT,
        "method": _choice(_operation.METHODS),
        "path": {"type": "string", "pattern": "^/"},
        "slashes": _TEXTS,
        "lists": _TEXTS,
        "scopes": _TEXTS,
        "query": _VALUES,
        "headers": {"type": "object", "additionalProperties": _ANY_TEXT},
        **_bodies(),
        "effect": _choice(_EFFECT),
        "destructive": _FLAG,
        "output": {"type": "object"},
        "idempotent": _FLAG,
        "answer": _choice(_operation.ANSWERS),
        "result": {"$ref": "#/$defs/result"},
        "error": _table(error),
        "refused": _statuses(*_operation.REFUSED),
        "precondition": _TEXTS,
        "answer_headers": {"type": "object", "maxProperties": _result.MOST_HEADERS, "additionalProperties": _TEXT},
        "redirect": _choice(_operation.REDIRECTS),
        "optional_body": _FLAG,
        "joined": _tables(
            _operations.NAME.pattern, _table(dict.fromkeys(("before", "between", "pair"), _ANY_TEXT), ("between",))
        ),
        "max_response_bytes": _number("integer", 1, _spec.MOST_RESPONSE_BYTES),
        "timeout_seconds": _number("number", _operations.LEAST_SECONDS, _spec.MOST_TIMEOUT_SECONDS),
        "reconcile": _reconcile(),
        "present": {"oneOf": [_present(kind, parts) for kind, parts in PRESENTATIONS.items()]},
        "pages": {"oneOf": [_pages_of(kind) for kind in _pages.KINDS]},
    }
    reads = {"required": ["effect"], "properties": {"effect": {"const": READ}}}
    judged = {"required": ["error"], "properties": {"error": {"required": ["when"]}}}
    one_body: list[Schema] = [{"required": [body]} for body in _operation.BODIES]
    rules = [
        {"oneOf": [*one_body, _without(*_operation.BODIES)]},
        *(
            {
                "if": {"properties": {"method": {"const": method}}, "required": ["method"]},
                "then": _without(*(each for each in _operation.BODIES if each not in bodies)),
            }
            for method, bodies in _operation.BODIES_OF.items()
        ),
        {"if": {"required": ["graphql"]}, "then": judged},
        {"if": reads, "then": _without("reconcile", "precondition"), "else": _without("pages", "answer_headers")},
    ]
    return _table(properties, ("method", "path"), allOf=rules)


def _http() -> Schema:
    root = {
        "connector": _connector(_schema.HTTP),
        "variables": _tables(_places.NAME.pattern, _variable()),
        "hosts": _tables(_places.NAME.pattern, _TEXT),
        "credential": {"oneOf": [_credential(kind) for kind in KINDS.values() if kind.name != "ssh_key"]},
        "operations": _tables(_operations.NAME.pattern, _operation_table(), minProperties=1),
    }
    return _table(root, ("connector", "operations"))


def _git() -> Schema:
    git = _table(
        {
            "repository": {"type": "string", "pattern": "^/"},
            "branches": _TEXTS,
            "tags": _TEXTS,
            "host_key": _TEXT,
        },
        ("repository",),
    )
    root = {
        "connector": _connector(_schema.GIT),
        "variables": _tables(_places.NAME.pattern, _variable()),
        "hosts": _tables(_places.NAME.pattern, _TEXT),
        "credential": {"oneOf": [_credential(KINDS[kind]) for kind in ("api_key", "basic", "oauth2", "ssh_key")]},
        "git": git,
    }
    return _table(root, ("connector", "git"))


def _mail_account() -> Schema:
    tls = _choice((_account.IMPLICIT, _account.STARTTLS, _account.NONE))
    server = _table({"host": _TEXT, "port": _number("integer", 1, 65535), "tls": tls}, ("host", "port"))
    mail = {"from": _TEXT, "user": _TEXT, "sent": _TEXT, "drafts": _TEXT, "save_sent": _FLAG}
    logins = []
    for name in _account.LOGINS:
        rules = KINDS[name].settings
        settings = {key: _TEXTS if rule.several else _TEXT for key, rule in rules.items()}
        logins.append(_table({"kind": {"const": name}, **settings}, ("kind",)))
    root = {
        "connector": _head(_schema.MAIL, {"private_network": _FLAG}),
        "credential": {"oneOf": logins},
        "mail": _table(mail, ("from",)),
        "smtp": server,
        "imap": server,
    }
    return _table(root, ("connector", "mail", "smtp"))


def _surroundings() -> Schema:
    return {
        "directory": {"type": "string", "pattern": "^/"},
        "environment": {"type": "object", "additionalProperties": _ANY_TEXT},
        "inherit": _TEXTS,
        "public": _TEXTS,
        "sandbox": _choice((_environment.AUTO, _environment.REQUIRED, _environment.NONE)),
        "network": _FLAG,
        "repository": _FLAG,
    }


def _program() -> Schema:
    code = {"type": "array", "items": _number("integer", 0, 255)}
    operation = {
        "description": _ANY_TEXT,
        "program": {"type": "string", "pattern": "^/"},
        "arguments": _TEXTS,
        "stdin": _ANY_TEXT,
        "dashes": _TEXTS,
        "success": code,
        "failure": code,
        "effect": _choice(_EFFECT),
        "idempotent": _FLAG,
        "destructive": _FLAG,
        "output": {"type": "object"},
        "answer": _choice(_command.ANSWERS),
        "timeout_seconds": _number("number", 0.001, _command.MOST_SECONDS),
        "max_output_bytes": _number("integer", 1, _command.MOST_OUTPUT_BYTES),
    }
    credential = {"kind": {"const": "api_key"}, "variable": _TEXT, "stdin": {"const": True}}
    root = {
        "connector": _head(_schema.COMMAND, {}),
        "command": _table(_surroundings(), ("directory",)),
        "credential": _table(credential, ("kind",), **_one_of(("variable", "stdin"))),
        "operations": _tables(_operations.NAME.pattern, _table(operation, ("program",))),
    }
    return _table(root, ("connector", "command", "operations"))


def _server() -> Schema:
    operation = {
        "description": _ANY_TEXT,
        "tool": {"type": "string", "minLength": 1, "maxLength": 256},
        "pin": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
        "effect": _choice(_EFFECT),
        "idempotent": _FLAG,
        "destructive": _FLAG,
        "output": {"type": "object"},
        "timeout_seconds": _number("number", _operations.LEAST_SECONDS, _server_file.MOST_SECONDS),
    }
    most = {"max_response_bytes": _number("integer", 1, _spec.MOST_RESPONSE_BYTES)}
    argv = {"type": "array", "items": _TEXT, "prefixItems": [{"pattern": "^/"}], "minItems": 1}
    readers = {"const": _environment.READERS}
    own = {"kind": {"const": "api_key"}, "variable": _TEXT, "readable_by": readers}
    root = {
        "connector": _head(_schema.MCP, {"private_network": _FLAG}),
        "operations": _tables(_operations.NAME.pattern, _table(operation, ("tool", "pin")), minProperties=1),
    }
    others = [_credential(kind) for kind in KINDS.values() if kind.placed and kind.name != "oauth2"]
    remote = {
        "mcp": _table({"url": _TEXT, **most}, ("url",)),
        "credential": {"oneOf": [_found_credential(), *others]},
    }
    digest = {"type": "string", "pattern": r"^sha256:[0-9a-f]{64}$"}
    lines = dict.fromkeys(("name", "version", "integrity"), _TEXT)
    packed = {"registry": {"enum": ["npm", "pypi"]}, **lines, "directory": {"type": "string", "pattern": "^/"}}
    most = {**most, "package": _table({**packed, "digest": digest}, (*packed, "digest"))}
    local = {
        "mcp": _table({"command": argv, **_surroundings(), **most}, ("command", "directory")),
        "credential": _table(own, ("kind", "variable")),
    }
    api = _table({"url": _TEXT, "post_reads": _FLAG}, ("url",))
    relayed = {
        "mcp": _table({"command": argv, **_surroundings(), **most, "api": api}, ("command", "directory", "api")),
        "credential": {"oneOf": [_credential(kind) for kind in KINDS.values() if kind.name != SshKey.name]},
    }
    several = [_table({**root, **each}, ("connector", "mcp")) for each in (remote, local)]
    several.append(_table({**root, **relayed}, ("connector", "mcp", "credential")))
    return {"oneOf": several}


def make_schema() -> Schema:
    """The whole: one of five forms, by the kind of the connector."""
    forms = {
        _schema.GIT: _git(),
        _schema.MAIL: _mail_account(),
        _schema.COMMAND: _program(),
        _schema.MCP: _server(),
    }
    chosen: Schema = {"$ref": f"#/$defs/{_schema.HTTP}"}
    for kind in forms:
        named = {"required": ["kind"], "properties": {"kind": {"const": kind}}}
        is_it = {"required": ["connector"], "properties": {"connector": named}}
        chosen = {"if": is_it, "then": {"$ref": f"#/$defs/{kind}"}, "else": chosen}
    parts = {"anyOf": [_DOTTED, _part()]}
    result = {"type": "object", "additionalProperties": parts}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A connector file of Aileron",
        **chosen,
        "$defs": {_schema.HTTP: _http(), **forms, "result": result},
    }
