"""The blocks of a tool's result, and the documents that a client reads.

A provider refuses a whole conversation over one picture that it cannot read, so only what it can goes as one; anything
else goes as a document.

An action that declares the schema of its output is answered as data as well: some clients show the model only this and
some only the text, so each of the two says everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote, unquote

import mcp.types as t
from attrs import evolve
from mcp.shared.exceptions import MCPError

from aileron.base.attachments import Attachment
from aileron.base.json import JSON
from aileron.base.schemas import fits
from aileron.client import DaemonAnswer

from ._definitions import ToolDefinition
from ._texts import ToolResult, render_notes, run_output
from .offering.access import find_action

_PENDING = 202

_MOST_PICTURE_BYTES = 3_750_000  # 5 MB in base64, which is as much as any provider takes
_BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


def attachment_uri(run_id: str, number: object) -> str:
    """Return the address of a run's attachment of that number, counted from 1."""
    return f"{run_uri(run_id)}/attachments/{number}"


def run_uri(run_id: str) -> str:
    """Return the address of a run."""
    return f"aileron://runs/{run_id}"


def to_resource(uri: str, attachment: Attachment) -> t.TextResourceContents | t.BlobResourceContents:
    """Make a document of an attachment."""
    if attachment.text is not None:
        return t.TextResourceContents(uri=uri, mime_type=attachment.media_type, text=attachment.text)
    return t.BlobResourceContents(uri=uri, mime_type=attachment.media_type, blob=attachment.base64)


def attachment_blocks(result: ToolResult, *, sound: bool = True) -> Iterator[t.ContentBlock]:
    """Make the content blocks of what is attached to a result.

    :param sound: whether the client's protocol has audio blocks; if not, audio becomes a document.
    """
    for number, attachment in enumerate(result.attachments, 1):
        if _is_picture(attachment):
            yield t.ImageContent(data=attachment.base64, mime_type=attachment.media_type)
        elif sound and attachment.media_type.startswith("audio/") and attachment.base64:
            yield t.AudioContent(data=attachment.base64, mime_type=attachment.media_type)
        else:
            document = to_resource(attachment_uri(result.run_id, number), attachment)
            yield t.EmbeddedResource(resource=document)


def _is_picture(attachment: Attachment) -> bool:
    """Tell whether it is what it is said to be, of a kind and size that models are shown."""
    beginning = _BEGINNINGS.get(attachment.media_type)
    if beginning is None or attachment.size > _MOST_PICTURE_BYTES:
        return False
    return beginning.match(attachment.content) is not None


def add_structured_data(definition: ToolDefinition, answer: DaemonAnswer, result: ToolResult) -> ToolResult:
    """Add structured data to C{result} where the action declares an output schema."""
    if definition.output_schema is None:
        return result
    if answer.status == _PENDING:
        return evolve(result, data={"status": str(answer.body.get("status", "pending")), "text": result.text})
    return evolve(result, data={"status": "completed", **_complete(answer, result, definition.output_schema)})


def _complete(answer: DaemonAnswer, result: ToolResult, schema: Mapping[str, JSON]) -> dict[str, JSON]:
    output = run_output(answer.body)
    if result.attachments or not fits(output, schema):  # a model that reads the data would be given base64 to read
        return {"text": result.text}
    beside = render_notes(answer.body)
    return {"output": output, **({"text": beside} if beside else {})}


RUNS_URI = "aileron://runs"
RUNS_TYPE = "application/json"
RUN_TYPE = "text/plain"
ACTION_TYPE = "text/markdown"

_ACTIONS = "aileron://actions/"
ACTION_TEMPLATE = f"{_ACTIONS}{{name}}"
RUN_TEMPLATE = run_uri("{run}")
ATTACHMENT_TEMPLATE = attachment_uri("{run}", "{number}")
_RUN = re.compile(run_uri("([0-9A-Z]{1,64})"))
_ATTACHMENT = re.compile(attachment_uri("([0-9A-Z]{1,64})", "([0-9]{1,6})"))


def action_uri(definition: ToolDefinition) -> str:
    """Return the address of an action's document, as it is listed."""
    return f"{_ACTIONS}{quote(str(definition.action), safe='')}"


def find_action_by_uri(uri: str, definitions: Sequence[ToolDefinition]) -> ToolDefinition:
    """Find the action whose document is at C{uri}, which may name its tool, or be written otherwise than it is listed.

    :raises MCPError: there is none.
    """
    definition = find_action(definitions, unquote(uri.removeprefix(_ACTIONS)) if uri.startswith(_ACTIONS) else "")
    if isinstance(definition, ToolResult):
        raise resource_not_found(uri)
    return definition


def parse_run_uri(uri: str) -> str | None:
    """Read which run is at C{uri}; L{None}: it is no such address."""
    found = _RUN.fullmatch(uri)
    return found[1] if found else None


def parse_attachment_uri(uri: str) -> tuple[str, int] | None:
    """Read the run whose attachment is at C{uri}, and its number; L{None}: it is no such address."""
    found = _ATTACHMENT.fullmatch(uri)
    return (found[1], int(found[2])) if found else None


def resource_not_found(uri: str) -> MCPError:
    """Refuse that there is none at C{uri}."""
    return MCPError(t.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})
