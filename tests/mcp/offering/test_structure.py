"""Answers as data."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonAnswer
from aileron.mcp._contents import add_structured_data, wrap_output_schema
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._texts import ToolResult, render_run
from tests.mcp.case import action

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ts": {"$ref": "#/$defs/moment"}, "$ref": {"type": "string"}},
    "required": ["ts"],
    "$defs": {"moment": {"type": "string"}},
}
EDITED = [{"path": "/text", "kind": "changed", "before": "a", "after": "b"}]


def definition(schema: Any = SCHEMA) -> ToolDefinition:
    """The tool of an action whose output is so."""
    (found,) = read_definitions([action(output_schema=schema)])
    return found


def done(output: object, **more: Any) -> DaemonAnswer:
    """A run that succeeded."""
    return DaemonAnswer(200, {"run_id": "R", "audit_id": "A", "result": {"output": output, "steps": {}}, **more})


class StructureTests(SynchronousTestCase):
    """Data beside the text."""

    def data(self, answer: DaemonAnswer) -> Any:
        """What a client gets, which is as the schema says that it was given."""
        result = add_structured_data(definition(), answer, render_run(answer))
        self.assertEqual(result.text, render_run(answer).text)
        schema: Any = wrap_output_schema(SCHEMA)
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(result.data)
        return result.data

    def test_undeclared(self) -> None:
        """An action that declares nothing answers with text alone."""
        answer = done({"ts": "1"})
        self.assertEqual(add_structured_data(definition(None), answer, ToolResult("x")), ToolResult("x"))

    def test_completed(self) -> None:
        """The output is there as it is, and nothing is said twice."""
        self.assertEqual(self.data(done({"ts": "1"})), {"status": "completed", "output": {"ts": "1"}})

    def test_everything(self) -> None:
        """What the text tells beside the output is in the data too."""
        data = self.data(done({"ts": "1"}, edited=EDITED, reason="go on"))
        self.assertEqual(data["output"], {"ts": "1"})
        for part in ("The user changed the arguments", "note: go on"):
            self.assertIn(part, data["text"])

    def test_other_output(self) -> None:
        """An output that is not as declared is told as text, all of it."""
        for output in ({"ts": 1}, "plain", None):
            answer = done(output, reason="go on")
            self.assertEqual(self.data(answer), {"status": "completed", "text": render_run(answer).text})

    def test_attachments(self) -> None:
        """No model is given base64 to read as data: the text says what is attached."""
        answer = done({"ts": "1", "picture": {"media_type": "image/png", "base64": "AAEC"}})
        result = add_structured_data(definition({"type": "object"}), answer, render_run(answer))
        self.assertEqual(result.data, {"status": "completed", "text": result.text})
        self.assertEqual((len(result.attachments), "attachment 1" in result.text), (1, True))

    def test_pending(self) -> None:
        """What waits says so, in the same words as the text."""
        answer = DaemonAnswer(202, {"status": "pending_approval", "message": "It waits.", "approval_id": "R"})
        self.assertEqual(self.data(answer), {"status": "pending_approval", "text": "It waits.\napproval_id: R"})
