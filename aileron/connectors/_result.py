"""Which parts of an answer make an output, and which of them are attachments."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from attrs import frozen

from aileron.redaction import REDACTED, Redactor
from aileron.values import JSON, UNKNOWN_MEDIA_TYPE, Attachment, attached, media_type_of, regular_base64

from ._table import Table
from ._when import ABSENT, Absent, Steps, at, dotted


@frozen
class Part:
    """One of them.

    :ivar media_type: of an attachment; empty: it is none.
    :ivar encoded: whether that stands in the answer in base64, and not as a text.
    """

    path: Steps
    media_type: str = ""
    encoded: bool = False

    def of(self, content: JSON, echo: Redactor) -> JSON | Absent:
        """What it is in C{content}; absent where nothing is, or what is no attachment but should be.

        :param echo: takes the secret out.
        """
        found = at(content, self.path)
        if not self.media_type or isinstance(found, Absent):
            return found
        if not isinstance(found, str):
            return ABSENT
        if not self.encoded:
            return Attachment(self.media_type, found).as_json()
        encoded = regular_base64(found)
        return attachment(self.media_type, base64.b64decode(encoded), echo) if encoded else ABSENT


Parts = Mapping[str, Part]
"""By their names in the output."""


def attachment(media_type: str, content: bytes, echo: Redactor) -> JSON:
    """Some bytes as an attachment; what is no text is held back where it holds the secret."""
    made = attached(media_type, content)
    if made.text is None and echo.holds(content):
        made = Attachment(media_type, REDACTED)
    return echo.value(made.as_json())


def chosen(parts: Parts, content: JSON, echo: Redactor) -> dict[str, JSON]:
    """Those of C{parts} that are in C{content}.

    :param echo: takes the secret out of what is decoded.
    """
    found = {name: part.of(content, echo) for name, part in parts.items()}
    return {name: part for name, part in found.items() if not isinstance(part, Absent)}


def has_attachments(parts: Parts | None) -> bool:
    """Whether one of them is an attachment."""
    return any(part.media_type for part in (parts or {}).values())


def read_parts(table: Table | None) -> Parts | None:
    """Read a table C{result}; faults go where the table's go."""
    if table is None:
        return None
    return {name: _part(table, name) for name in table.values}


def _part(table: Table, name: str) -> Part:
    if isinstance(table.values[name], dict):
        inside = table.table(name)
        return Part(()) if inside is None else _attachment(inside)
    return Part(table.read(name, dotted, (), required=True))


def _attachment(table: Table) -> Part:
    media_type = table.text("media_type", required=True)
    if media_type and media_type_of(media_type) != media_type:
        table.fault("media_type", "must be a media type in lower case, such as image/png")
    places = [key for key in ("base64", "text") if key in table.values]
    if len(places) != 1:
        table.fault("base64", "must say where the content stands: one of base64 and text")
    path: Steps = ()
    for key in places:
        path = table.read(key, dotted, (), required=True)
    table.close()
    return Part(path, media_type or UNKNOWN_MEDIA_TYPE, encoded=places[:1] == ["base64"])
