"""The JSON Schema of the environment of programs in connector files."""

from __future__ import annotations

from aileron.connectors._json_schema import ANY_TEXT, FLAG, TEXTS, Schema, choice

from . import environment as _environment


def surroundings() -> Schema:
    """Return the schema of the keys that declare the environment of programs."""
    return {
        "directory": {"type": "string", "pattern": "^/"},
        "environment": {"type": "object", "additionalProperties": ANY_TEXT},
        "inherit": TEXTS,
        "public": TEXTS,
        "sandbox": choice((_environment.AUTO, _environment.REQUIRED, _environment.NONE)),
        "network": FLAG,
        "repository": FLAG,
    }
