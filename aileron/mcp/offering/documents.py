"""The documents' addresses: the session's runs, what is attached to their results, what there is to know of actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import mcp.types as t
from mcp.shared.exceptions import MCPError

from aileron.mcp._contents import attachment_uri, run_uri
from aileron.mcp._definitions import ToolDefinition
from aileron.mcp._texts import ToolResult

from .access import named

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


def address_of(definition: ToolDefinition) -> str:
    """Where an action's document is, as it is listed."""
    return f"{_ACTIONS}{quote(str(definition.action), safe='')}"


def action_at(uri: str, definitions: Sequence[ToolDefinition]) -> ToolDefinition:
    """The action whose document is at C{uri}, which may name its tool, or be written otherwise than it is listed.

    :raises MCPError: there is none.
    """
    definition = named(definitions, unquote(uri.removeprefix(_ACTIONS)) if uri.startswith(_ACTIONS) else "")
    if isinstance(definition, ToolResult):
        raise no_document(uri)
    return definition


def run_at(uri: str) -> str | None:
    """The run that is at C{uri}; L{None}: it is no such address."""
    found = _RUN.fullmatch(uri)
    return found[1] if found else None


def attachment_at(uri: str) -> tuple[str, int] | None:
    """The run whose attachment is at C{uri}, and its number; L{None}: it is no such address."""
    found = _ATTACHMENT.fullmatch(uri)
    return (found[1], int(found[2])) if found else None


def no_document(uri: str) -> MCPError:
    """That there is none at C{uri}."""
    return MCPError(t.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})
