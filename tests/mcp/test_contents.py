"""The blocks of a result, and answers as data."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import mcp.types as t
from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.attachments import Attachment
from aileron.client import DaemonAnswer
from aileron.mcp._contents import add_structured_data
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._texts import ToolResult, render_run
from aileron.mcp.offering.tools import wrap_output_schema
from aileron.mcp.waiting.tasks import to_call_result
from tests.mcp.case import action

PNG = b"\x89PNG\r\n\x1a\n and so on"


def attachment(media_type: str, content: bytes) -> Attachment:
    """One of bytes."""
    return Attachment(media_type, base64=base64.b64encode(content).decode())


def blocks(*attachments: Attachment) -> Sequence[t.ContentBlock]:
    """What stands behind the text."""
    first, *others = to_call_result(ToolResult("Done.", run_id="R", attachments=attachments)).content
    assert isinstance(first, t.TextContent) and first.text == "Done."
    return others


class ContentsTests(SynchronousTestCase):
    """Each kind."""

    def test_pictures(self) -> None:
        """A picture that is one is shown as one."""
        for kind, content in {
            "png": PNG,
            "jpeg": b"\xff\xd8\xff\xe0",
            "gif": b"GIF89a",
            "webp": b"RIFF\n\x00\x00\x00WEBP",
        }.items():
            [block] = blocks(attachment(f"image/{kind}", content))
            assert isinstance(block, t.ImageContent)
            self.assertEqual((block.mime_type, base64.b64decode(block.data)), (f"image/{kind}", content))

    def test_no_pictures(self) -> None:
        """What no model can be shown, be it called a picture, is a document: it would end the conversation."""
        large = PNG + bytes(3_750_000)
        for kind, content in (("png", b"GIF89a"), ("webp", b"RIFF....WAVE"), ("tiff", b"II*\0"), ("png", large)):
            [block] = blocks(attachment(f"image/{kind}", content))
            assert isinstance(block, t.EmbeddedResource) and isinstance(block.resource, t.BlobResourceContents)
            self.assertEqual(base64.b64decode(block.resource.blob), content)

    def test_sound(self) -> None:
        """Sound is sound; to a protocol that knows of none it is a document."""
        [block] = blocks(attachment("audio/wav", b"RIFF"))
        assert isinstance(block, t.AudioContent)
        self.assertEqual((block.mime_type, base64.b64decode(block.data)), ("audio/wav", b"RIFF"))
        result = ToolResult("Done.", run_id="R", attachments=(attachment("audio/wav", b"RIFF"),))
        self.assertEqual([each.type for each in to_call_result(result, sound=False).content], ["text", "resource"])
        self.assertEqual(blocks(), [])

    def test_documents(self) -> None:
        """Each of the others is a document at the place of its number."""
        one, two = blocks(Attachment("text/csv", "a;b"), attachment("application/pdf", b"%PDF"))
        assert isinstance(one, t.EmbeddedResource) and isinstance(one.resource, t.TextResourceContents)
        assert isinstance(two, t.EmbeddedResource) and isinstance(two.resource, t.BlobResourceContents)
        self.assertEqual((one.resource.mime_type, one.resource.text), ("text/csv", "a;b"))
        self.assertEqual((two.resource.mime_type, base64.b64decode(two.resource.blob)), ("application/pdf", b"%PDF"))
        self.assertEqual(
            [each.resource.uri for each in (one, two)],
            ["aileron://runs/R/attachments/1", "aileron://runs/R/attachments/2"],
        )
        [withheld] = blocks(Attachment("audio/wav", "[redacted]"))
        self.assertIsInstance(withheld, t.EmbeddedResource)


OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ts": {"$ref": "#/$defs/moment"}, "$ref": {"type": "string"}},
    "required": ["ts"],
    "$defs": {"moment": {"type": "string"}},
}
EDITED = [{"path": "/text", "kind": "changed", "before": "a", "after": "b"}]


def definition(schema: Any = OUTPUT_SCHEMA) -> ToolDefinition:
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
        schema: Any = wrap_output_schema(OUTPUT_SCHEMA)
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
