"""The attachments of an output: pictures, sound and documents, each an object of two keys.

C{{"media_type": "image/png", "base64": "…"}}, or C{{"media_type": "text/csv", "text": "…"}}, wherever it stands.
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
    """One of them.

    :ivar media_type: in lower case and without parameters.
    :ivar text: what it says, where it is a text; else L{None}.
    :ivar base64: its bytes, where it is none; else empty.
    """

    media_type: str
    text: str | None = None
    base64: str = ""

    @property
    def size(self) -> int:
        """The size in bytes."""
        if self.text is not None:
            return len(self.text.encode())
        return len(self.base64) // 4 * 3 - self.base64[-2:].count("=")

    @property
    def content(self) -> bytes:
        """Its bytes."""
        return base64.b64decode(self.base64) if self.text is None else self.text.encode()

    def as_output(self) -> JSON:
        """Return the attachment as it stands in an output, which is read by its shape alone."""
        if self.text is None:
            return {"media_type": self.media_type, "base64": self.base64}
        return {"media_type": self.media_type, "text": self.text}


def media_type_of(said: str) -> str:
    """Read the media type that a C{Content-Type} names; L{UNKNOWN_MEDIA_TYPE} where it names none."""
    name = said.partition(";")[0].strip().lower()
    return name if _MEDIA_TYPE.fullmatch(name) else UNKNOWN_MEDIA_TYPE


def attached(media_type: str, content: bytes) -> Attachment:
    """C{content} as an attachment: a text where its type is written and it is UTF-8 without NUL."""
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
    """Return the same bytes in the usual base64, from one that is folded, unpadded or for URLs; L{None}: it is none."""
    bare = text.translate(_OTHERWISE).rstrip("=")
    try:
        return base64.b64encode(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)).decode("ascii")
    except (binascii.Error, ValueError):
        return None


def set_apart(output: JSON) -> tuple[JSON, tuple[Attachment, ...]]:
    """Put a few words in the place of each attachment of an output.

    Return that, and the attachments in order, each once.
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
    """Return what C{value} is, if it is one."""
    media_type, text, encoded = value.get("media_type"), value.get("text"), value.get("base64")
    if len(value) != 2 or not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
        return None
    if isinstance(text, str):
        return Attachment(media_type, text)
    if isinstance(encoded, str) and encoded and regular_base64(encoded) == encoded:
        return Attachment(media_type, base64=encoded)
    return None
