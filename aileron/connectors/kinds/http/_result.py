"""Reads the result out of a response: members, attachments, and headers needed by later writes."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping

from attrs import frozen

from aileron.base.attachments import UNKNOWN_MEDIA_TYPE, Attachment, attached, media_type_of, regular_base64
from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._answer import ServiceAnswer
from aileron.connectors._decode import proper
from aileron.model.connectors import READ
from aileron.redaction import REDACTED, Redactor

from ._when import ABSENT, MissingPath, Steps, at, dotted


@frozen
class Part:
    """One part of a result.

    :ivar media_type: the media type if the result is an attachment, or else empty.
    :ivar encoded: whether the attachment is in base64 in the response.
    """

    path: Steps
    media_type: str = ""
    encoded: bool = False

    def of(self, content: JSON, echo: Redactor) -> JSON | MissingPath:
        """Return the part's value in C{content}, or L{ABSENT} if it is missing or no valid attachment.

        :param echo: redacts the secret.
        """
        found = at(content, self.path)
        if not self.media_type or isinstance(found, MissingPath):
            return found
        if not isinstance(found, str):
            return ABSENT
        if not self.encoded:
            return Attachment(self.media_type, found).as_output()
        encoded = regular_base64(found)
        return attachment(self.media_type, base64.b64decode(encoded), echo) if encoded else ABSENT


Parts = Mapping[str, Part]
"""The parts by their names in the output."""


def attachment(media_type: str, content: bytes, echo: Redactor) -> JSON:
    """Return an attachment of some bytes. Binary content that contains the secret is withheld."""
    made = attached(media_type, content)
    if made.text is None and echo.holds(content):
        made = Attachment(media_type, REDACTED)
    return echo.value(made.as_output())


def chosen(parts: Parts, content: JSON, echo: Redactor) -> dict[str, JSON]:
    """Return the parts that exist in C{content}.

    :param echo: redacts the secret in decoded parts.
    """
    found = {name: part.of(content, echo) for name, part in parts.items()}
    return {name: part for name, part in found.items() if not isinstance(part, MissingPath)}


def has_attachments(parts: Parts | None) -> bool:
    """Return whether one of the parts is an attachment."""
    return any(part.media_type for part in (parts or {}).values())


def read_parts(table: FileTable | None) -> Parts | None:
    """Read a table C{result}, or return None if C{table} is None. Faults are added to the table."""
    if table is None:
        return None
    return {name: _part(table, name) for name in table.values}


def _part(table: FileTable, name: str) -> Part:
    if isinstance(table.values[name], dict):
        return _attachment(table.table(name))
    return Part(table.read(name, dotted, (), required=True))


def _attachment(table: FileTable) -> Part:
    media_type = table.text("media_type")
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


MOST_HEADERS = 16
MOST_CHARACTERS = 4096
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_KEPT_BACK = frozenset({"set-cookie", "set-cookie2", "www-authenticate", "authentication-info"})


def read_precondition(table: FileTable, inputs: Collection[str], effect: str) -> tuple[str, ...]:
    """Return the inputs that C{precondition} names. Faults are added to the table.

    A write with such an input is refused by the service if the object has changed since it was read.
    """
    names = table.some("precondition", inputs, "names {}, which is not an input of the operation")
    if names and effect == READ:
        table.fault("precondition", "is for what has an effect")
    return names


def read_answer_headers(table: FileTable, effect: str, named: Collection[str] | None) -> Mapping[str, str]:
    """Read C{answer_headers}: the lower-case header of each name in the result. Faults are added to the table.

    :param named: the other parts of the result, or None if it is the whole response. Then no header can be added.
    """
    inside = table.optional_table("answer_headers")
    if inside is None:
        return {}
    if effect != READ:
        table.fault("answer_headers", "is for reads")
    if named is None:
        table.fault("answer_headers", 'needs a result to stand in, or answer = "none"')
    if len(inside.values) > MOST_HEADERS:
        table.fault("answer_headers", f"may hold at most {MOST_HEADERS}")
    return {name: _header(inside, name, named or ()) for name in inside.values}


def _header(inside: FileTable, name: str, named: Collection[str]) -> str:
    header = inside.text(name).lower()
    if name in named:
        inside.fault(name, "is part of the result already")
    if header and not _TOKEN.fullmatch(header):
        inside.fault(name, "is not a valid header name")
    if header in _KEPT_BACK:
        inside.fault(name, "is a header that is not handed on")
    return header


def lifted(headers: Mapping[str, str], answer: ServiceAnswer) -> dict[str, JSON]:
    """Return the parts of a result that are headers. A missing, empty or overlong header is null."""
    found = {name: proper(answer.headers.get(header, "")) for name, header in headers.items()}
    return {name: value if 0 < len(value) <= MOST_CHARACTERS else None for name, value in found.items()}
