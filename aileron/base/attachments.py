"""The attachments of an output: images, sound and documents, each an object with two keys.

C{{"media_type": "image/png", "base64": "…"}}, or C{{"media_type": "text/csv", "text": "…"}}, anywhere in the output.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from .json import JSON

UNKNOWN_MEDIA_TYPE = "application/octet-stream"

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_WRITTEN = re.compile(r"(?:json|xml|javascript|yaml|toml|x-ndjson)|.*\+(?:json|xml|yaml)")
_OTHERWISE = str.maketrans("-_", "+/", "\r\n\t ")


@frozen
class Attachment:
    """An attachment of an output.

    :ivar media_type: the media type in lower case, without parameters.
    :ivar text: the content if it is a text, else None.
    :ivar base64: the content if it is not a text, else empty.
    """

    media_type: str
    text: str | None = None
    base64: str = ""

    @property
    def size(self) -> int:
        """The attachment's size in bytes."""
        if self.text is not None:
            return len(self.text.encode())
        return len(self.base64) // 4 * 3 - self.base64[-2:].count("=")

    @property
    def content(self) -> bytes:
        """The attachment's content."""
        return base64.b64decode(self.base64) if self.text is None else self.text.encode()

    def as_output(self) -> JSON:
        """Return the attachment as an object of an output.

        Attachments are recognized by the shape of this object alone.
        """
        if self.text is None:
            return {"media_type": self.media_type, "base64": self.base64}
        return {"media_type": self.media_type, "text": self.text}


def media_type_of(said: str) -> str:
    """Return the media type of a C{Content-Type} value, or L{UNKNOWN_MEDIA_TYPE} if the value names none."""
    name = said.partition(";")[0].strip().lower()
    return name if _MEDIA_TYPE.fullmatch(name) else UNKNOWN_MEDIA_TYPE


def attached(media_type: str, content: bytes) -> Attachment:
    """Return C{content} as an attachment.

    It is a text if its media type is textual and it is UTF-8 without NUL. Otherwise, it is base64.
    """
    kind, _, name = media_type.partition("/")
    if kind == "text" or _WRITTEN.fullmatch(name):
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return Attachment(media_type, text)
    return Attachment(media_type, base64=base64.b64encode(content).decode("ascii"))


def regular_base64(text: str) -> str | None:
    """Convert folded, unpadded or URL-safe base64 to standard base64, or return None if C{text} is not base64."""
    bare = text.translate(_OTHERWISE).rstrip("=")
    try:
        return base64.b64encode(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)).decode("ascii")
    except (binascii.Error, ValueError):
        return None


def set_apart(output: JSON) -> tuple[JSON, tuple[Attachment, ...]]:
    """Replace each attachment of an output by a short text.

    Return the new output and the distinct attachments in their order.
    """
    found: dict[Attachment, int] = {}
    return _replace(output, found), tuple(found)


def _replace(value: JSON, found: dict[Attachment, int]) -> JSON:
    if isinstance(value, Mapping):
        attachment = _attachment(value)
        if attachment is None:
            return {key: _replace(each, found) for key, each in value.items()}
        number = found.setdefault(attachment, len(found) + 1)
        return f"[attachment {number}: {attachment.media_type}, {attachment.size:,} bytes]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_replace(each, found) for each in value]
    return value


def _attachment(value: Mapping[str, JSON]) -> Attachment | None:
    """Return C{value} as an attachment, or None if it is not one."""
    media_type, text, encoded = value.get("media_type"), value.get("text"), value.get("base64")
    if len(value) != 2 or not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
        return None
    if isinstance(text, str):
        return Attachment(media_type, text)
    if isinstance(encoded, str) and encoded and regular_base64(encoded) == encoded:
        return Attachment(media_type, base64=encoded)
    return None
