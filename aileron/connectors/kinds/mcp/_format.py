"""The JSON Schema of connector files of the kind C{mcp}."""

from __future__ import annotations

from aileron.connectors import _operations
from aileron.connectors._answer import MOST_RESPONSE_BYTES
from aileron.connectors._json_schema import (
    ANY_TEXT,
    EFFECTS,
    FLAG,
    FOUND,
    PRESENT,
    TEXT,
    Schema,
    choice,
    credential_of,
    head_of,
    number,
    operations,
    presentation,
    table,
    without,
)
from aileron.connectors.programs import READERS, surroundings
from aileron.credentials import KINDS, SshKey

from . import _spec


def _found_credential() -> Schema:
    """Return the schema of an OAuth 2 credential, whose URLs may be discovered from the server."""
    made = credential_of(KINDS["oauth2"], FOUND)
    finds = {"properties": {"discover": {"const": True}}, "required": ["discover"]}
    named = without("token_url", "authorize_url", "device_url")
    return {**made, "if": finds, "then": named, "else": without("client_metadata_url")}


def make_schema() -> Schema:
    """Return the JSON Schema of an C{mcp} connector file."""
    operation = {
        "description": ANY_TEXT,
        "tool": {"type": "string", "minLength": 1, "maxLength": 256},
        "pin": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
        "effect": choice(EFFECTS),
        "idempotent": FLAG,
        "destructive": FLAG,
        "irreversible": FLAG,
        "present": PRESENT,
        "output": {"type": "object"},
        "timeout_seconds": number("number", _operations.LEAST_SECONDS, _spec.MOST_SECONDS),
    }
    most = {"max_response_bytes": number("integer", 1, MOST_RESPONSE_BYTES)}
    argv = {"type": "array", "items": TEXT, "prefixItems": [{"pattern": "^/"}], "minItems": 1}
    readers = {"const": READERS}
    own = {"kind": {"const": "api_key"}, "variable": TEXT, "readable_by": readers}
    root = {
        "connector": head_of("mcp", {"private_network": FLAG}),
        "operations": operations(table(operation, ("tool", "pin")), minProperties=1),
    }
    others = [credential_of(kind) for kind in KINDS.values() if kind.placed and kind.name != "oauth2"]
    remote = {
        "mcp": table({"url": TEXT, **most}, ("url",)),
        "credential": {"oneOf": [_found_credential(), *others]},
    }
    digest = {"type": "string", "pattern": r"^sha256:[0-9a-f]{64}$"}
    lines = dict.fromkeys(("name", "version", "integrity"), TEXT)
    packed = {"registry": {"enum": ["npm", "pypi"]}, **lines, "directory": {"type": "string", "pattern": "^/"}}
    most = {**most, "package": table({**packed, "digest": digest}, (*packed, "digest"))}
    local = {
        "mcp": table({"command": argv, **surroundings(), **most}, ("command", "directory")),
        "credential": table(own, ("kind", "variable")),
    }
    api = table({"url": TEXT, "post_reads": FLAG}, ("url",))
    relayed = {
        "mcp": table({"command": argv, **surroundings(), **most, "api": api}, ("command", "directory", "api")),
        "credential": {"oneOf": [credential_of(kind) for kind in KINDS.values() if kind.name != SshKey.name]},
    }
    several = [table({**root, **each}, ("connector", "mcp")) for each in (remote, local)]
    several.append(table({**root, **relayed}, ("connector", "mcp", "credential")))
    return {"oneOf": several, "$defs": presentation()}
