"""The JSON Schema of connector files of the kind C{git}."""

from __future__ import annotations

from aileron.connectors._forwarding import SERVICE
from aileron.connectors._json_schema import (
    TEXT,
    TEXTS,
    Schema,
    credential_of,
    places,
    service_head,
    table,
    without,
)
from aileron.credentials import KINDS


def make_schema() -> Schema:
    """Return the JSON Schema of a C{git} connector file."""
    git = table(
        {
            "repository": {"type": "string", "pattern": "^/"},
            "branches": TEXTS,
            "tags": TEXTS,
            "host_key": TEXT,
        },
        ("repository",),
    )
    own_tools = table({"service": {"type": "string", "pattern": f"^(?:{SERVICE.pattern})$"}}, ("service",))
    root = {
        "connector": service_head("git"),
        **places(),
        "credential": {"oneOf": [credential_of(KINDS[kind]) for kind in ("api_key", "basic", "oauth2", "ssh_key")]},
        "git": git,
        "own_tools": own_tools,
    }
    of_repository = {"required": ["git"], **without("own_tools")}
    of_host = {"required": ["own_tools", "credential"], **without("git", "variables", "hosts")}
    return table(root, ("connector",), oneOf=[of_repository, of_host])
