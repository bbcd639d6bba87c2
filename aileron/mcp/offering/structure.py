"""An answer as data, for an action that declares the schema of its output.

Some clients show the model only this and some only the text, so each of the two says everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from aileron.client import Answer
from aileron.mcp._cards import Card
from aileron.mcp._texts import Said, beside_output, output_of
from aileron.values import JSON, fits

_REFERENCES = ("$ref", "$dynamicRef")
_PENDING = 202


def wrapped(output: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema of the whole answer, C{output} being that of the action's own."""
    status = {"type": "string", "description": "completed; or anything else: it is not done."}
    text = {"type": "string", "description": "What else there is to know."}
    properties = {"status": status, "output": _moved(output), "text": text}
    return {"type": "object", "properties": properties, "required": ["status"], "additionalProperties": False}


def structured(card: Card, answer: Answer, said: Said) -> Said:
    """What was said, as data too where the action declares a schema."""
    if card.output_schema is None:
        return said
    if answer.status == _PENDING:
        return evolve(said, data={"status": str(answer.body.get("status", "pending")), "text": said.text})
    return evolve(said, data={"status": "completed", **_completed(answer, said, card.output_schema)})


def _completed(answer: Answer, said: Said, schema: Mapping[str, JSON]) -> dict[str, JSON]:
    output = output_of(answer.body)
    if said.attachments or not fits(output, schema):  # a model that reads the data would be given base64 to read
        return {"text": said.text}
    beside = beside_output(answer.body)
    return {"output": output, **({"text": beside} if beside else {})}


def _moved(schema: JSON) -> JSON:
    """The schema, a level below: what it says of its own parts says where they are now."""
    if isinstance(schema, Mapping):
        return {key: _led(value) if key in _REFERENCES else _moved(value) for key, value in schema.items()}
    if isinstance(schema, (list, tuple)):
        return [_moved(value) for value in schema]
    return schema


def _led(value: JSON) -> JSON:
    return f"#/properties/output{value[1:]}" if isinstance(value, str) else _moved(value)
