"""The JSON Schema of connector files of the kind C{command}."""

from __future__ import annotations

from aileron.connectors._json_schema import (
    ANY_TEXT,
    EFFECTS,
    FLAG,
    PRESENT,
    TEXT,
    TEXTS,
    Schema,
    choice,
    head_of,
    number,
    one_of,
    operations,
    presentation,
    table,
)
from aileron.connectors.programs import surroundings

from . import _spec as _command


def make_schema() -> Schema:
    """Return the JSON Schema of a C{command} connector file."""
    code = {"type": "array", "items": number("integer", 0, 255)}
    operation = {
        "description": ANY_TEXT,
        "program": {"type": "string", "pattern": "^/"},
        "arguments": TEXTS,
        "stdin": ANY_TEXT,
        "dashes": TEXTS,
        "success": code,
        "failure": code,
        "effect": choice(EFFECTS),
        "idempotent": FLAG,
        "destructive": FLAG,
        "irreversible": FLAG,
        "present": PRESENT,
        "output": {"type": "object"},
        "answer": choice(_command.ANSWERS),
        "timeout_seconds": number("number", 0.001, _command.MOST_SECONDS),
        "max_output_bytes": number("integer", 1, _command.MOST_OUTPUT_BYTES),
    }
    credential = {"kind": {"const": "api_key"}, "variable": TEXT, "stdin": {"const": True}}
    root = {
        "connector": head_of("command", {}),
        "command": table(surroundings(), ("directory",)),
        "credential": table(credential, ("kind",), **one_of(("variable", "stdin"))),
        "operations": operations(table(operation, ("program",))),
    }
    return {**table(root, ("connector", "command", "operations")), "$defs": presentation()}
