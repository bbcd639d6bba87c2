"""The content blocks of a tool's result, and the documents that a client reads.

A provider refuses a whole conversation that contains one picture that it cannot read. So only a picture in a supported
format becomes an image block, and everything else becomes a document.

If an action declares an output schema, the result also has structured data. Some clients show the model only the
structured data and some only the text, so each of the two is complete.
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

_MOST_PICTURE_BYTES = 3_750_000  # 5 MB in base64, the highest limit of any provider
_BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


def attachment_uri(run_id: str, number: object) -> str:
    """Return the URI of a run's attachment. C{number} counts from 1."""
    return f"{run_uri(run_id)}/attachments/{number}"


def run_uri(run_id: str) -> str:
    """Return the URI of a run."""
    return f"aileron://runs/{run_id}"


def to_resource(uri: str, attachment: Attachment) -> t.TextResourceContents | t.BlobResourceContents:
    """Convert an attachment to a document."""
    if attachment.text is not None:
        return t.TextResourceContents(uri=uri, mime_type=attachment.media_type, text=attachment.text)
    return t.BlobResourceContents(uri=uri, mime_type=attachment.media_type, blob=attachment.base64)


def attachment_blocks(result: ToolResult, *, sound: bool = True) -> Iterator[t.ContentBlock]:
    """Yield the content blocks of a result's attachments.

    :param sound: whether the client's protocol has audio blocks. If not, audio becomes a document.
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
    """Return whether the attachment is a picture that language models accept: by its type, size and first bytes."""
    beginning = _BEGINNINGS.get(attachment.media_type)
    if beginning is None or attachment.size > _MOST_PICTURE_BYTES:
        return False
    return beginning.match(attachment.content) is not None


def add_structured_data(definition: ToolDefinition, answer: DaemonAnswer, result: ToolResult) -> ToolResult:
    """Return C{result} with structured data if the action declares an output schema, else unchanged."""
    if definition.output_schema is None:
        return result
    if answer.status == _PENDING:
        return evolve(result, data={"status": str(answer.body.get("status", "pending")), "text": result.text})
    return evolve(result, data={"status": "completed", **_complete(answer, result, definition.output_schema)})


def _complete(answer: DaemonAnswer, result: ToolResult, schema: Mapping[str, JSON]) -> dict[str, JSON]:
    output = run_output(answer.body)
    if result.attachments or not fits(output, schema):  # attachments would be base64 in the data
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
    """Return the URI of an action's document."""
    return f"{_ACTIONS}{quote(str(definition.action), safe='')}"


def find_action_by_uri(uri: str, definitions: Sequence[ToolDefinition]) -> ToolDefinition:
    """Find the action whose document is at C{uri}. The URI may also name its tool or be encoded differently.

    :raises MCPError: if there is no such action.
    """
    definition = find_action(definitions, unquote(uri.removeprefix(_ACTIONS)) if uri.startswith(_ACTIONS) else "")
    if isinstance(definition, ToolResult):
        raise resource_not_found(uri)
    return definition


def parse_run_uri(uri: str) -> str | None:
    """Return the run ID in C{uri}, or None if it is not a run's URI."""
    found = _RUN.fullmatch(uri)
    return found[1] if found else None


def parse_attachment_uri(uri: str) -> tuple[str, int] | None:
    """Return the run ID and the attachment's number in C{uri}, or None if it is not an attachment's URI."""
    found = _ATTACHMENT.fullmatch(uri)
    return (found[1], int(found[2])) if found else None


def resource_not_found(uri: str) -> MCPError:
    """Return the error for a URI without a resource."""
    return MCPError(t.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})
