"""The JSON Schema of connector files of the kind C{git}."""

from __future__ import annotations

from aileron.connectors._json_schema import (
    TEXT,
    TEXTS,
    Schema,
    credential_of,
    places,
    service_head,
    table,
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
    root = {
        "connector": service_head("git"),
        **places(),
        "credential": {"oneOf": [credential_of(KINDS[kind]) for kind in ("api_key", "basic", "oauth2", "ssh_key")]},
        "git": git,
    }
    return table(root, ("connector", "git"))
