"""The JSON Schema of what connector files say of the surroundings of programs."""

from __future__ import annotations

from aileron.connectors._json_schema import ANY_TEXT, FLAG, TEXTS, Schema, choice

from . import environment as _environment


def surroundings() -> Schema:
    """Make that of the keys that say where programs run."""
    return {
        "directory": {"type": "string", "pattern": "^/"},
        "environment": {"type": "object", "additionalProperties": ANY_TEXT},
        "inherit": TEXTS,
        "public": TEXTS,
        "sandbox": choice((_environment.AUTO, _environment.REQUIRED, _environment.NONE)),
        "network": FLAG,
        "repository": FLAG,
    }
