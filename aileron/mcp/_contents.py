"""The blocks of a tool's result: its text, then whatever came with it, as clients show each kind.

A provider refuses a whole conversation over one picture that it cannot read, so only what it can goes as one; anything
else goes as a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import mcp.types as t

from aileron.values import Attachment

from ._texts import Said

_MOST_PICTURE_BYTES = 3_750_000  # 5 MB in base64, which is as much as any provider takes
_BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


def contents_of(said: Said, *, sound: bool = True) -> list[t.ContentBlock]:
    """What a client is given to show of C{said}.

    :param sound: whether its protocol knows of sound; else that is a document.
    """
    return [t.TextContent(text=said.text), *blocks_of(said, sound=sound)]


def attachment_uri(run_id: str, number: object) -> str:
    """Where a run's attachment of that number is, counted from 1."""
    return f"{run_uri(run_id)}/attachments/{number}"


def run_uri(run_id: str) -> str:
    """Where a run is."""
    return f"aileron://runs/{run_id}"


def document_of(uri: str, attachment: Attachment) -> t.TextResourceContents | t.BlobResourceContents:
    """An attachment as a document."""
    if attachment.text is not None:
        return t.TextResourceContents(uri=uri, mime_type=attachment.media_type, text=attachment.text)
    return t.BlobResourceContents(uri=uri, mime_type=attachment.media_type, blob=attachment.base64)


def blocks_of(said: Said, *, sound: bool = True) -> Iterator[t.ContentBlock]:
    """The same without the text."""
    for number, attachment in enumerate(said.attachments, 1):
        if _is_picture(attachment):
            yield t.ImageContent(data=attachment.base64, mime_type=attachment.media_type)
        elif sound and attachment.media_type.startswith("audio/") and attachment.base64:
            yield t.AudioContent(data=attachment.base64, mime_type=attachment.media_type)
        else:
            document = document_of(attachment_uri(said.run_id, number), attachment)
            yield t.EmbeddedResource(resource=document)


def _is_picture(attachment: Attachment) -> bool:
    """Whether it is what it is said to be, of a kind and size that models are shown."""
    beginning = _BEGINNINGS.get(attachment.media_type)
    if beginning is None or attachment.size > _MOST_PICTURE_BYTES:
        return False
    return beginning.match(attachment.content) is not None
