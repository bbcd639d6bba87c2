"""The blocks of a result."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import mcp.types as t
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._contents import to_content_blocks
from aileron.mcp._texts import ToolResult
from aileron.values import Attachment

PNG = b"\x89PNG\r\n\x1a\n and so on"


def attachment(media_type: str, content: bytes) -> Attachment:
    """One of bytes."""
    return Attachment(media_type, base64=base64.b64encode(content).decode())


def blocks(*attachments: Attachment) -> Sequence[t.ContentBlock]:
    """What stands behind the text."""
    first, *others = to_content_blocks(ToolResult("Done.", run_id="R", attachments=attachments))
    assert isinstance(first, t.TextContent) and first.text == "Done."
    return others


class ContentsTests(SynchronousTestCase):
    """Each kind."""

    def test_text_alone(self) -> None:
        """Nothing is attached."""
        self.assertEqual(blocks(), [])

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
        """Sound is sound."""
        [block] = blocks(attachment("audio/wav", b"RIFF"))
        assert isinstance(block, t.AudioContent)
        self.assertEqual((block.mime_type, base64.b64decode(block.data)), ("audio/wav", b"RIFF"))

    def test_no_sound(self) -> None:
        """To a protocol that knows of none it is a document."""
        result = ToolResult("Done.", run_id="R", attachments=(attachment("audio/wav", b"RIFF"),))
        self.assertEqual([each.type for each in to_content_blocks(result, sound=False)], ["text", "resource"])

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
