"""The lists and documents of the SDK's server: tools, resources, prompts, and completion of their arguments.

Everything here runs in the asyncio loop.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import mcp.types as t
from mcp.shared.exceptions import MCPError

from aileron.base.attachments import set_apart
from aileron.client import DaemonError, DaemonFault, SessionEnvironment
from aileron.mcp._contents import (
    ACTION_TEMPLATE,
    ACTION_TYPE,
    ATTACHMENT_TEMPLATE,
    RUN_TEMPLATE,
    RUN_TYPE,
    RUNS_TYPE,
    RUNS_URI,
    action_uri,
    find_action_by_uri,
    parse_attachment_uri,
    parse_run_uri,
    resource_not_found,
    to_resource,
)
from aileron.mcp._definitions import ToolDefinition
from aileron.mcp._notifier import Context
from aileron.mcp._texts import render_status, run_output
from aileron.mcp._tools import ITools
from aileron.mcp.waiting.clients import identify_client

from .access import render_action
from .prompts import PROMPTS, complete_argument
from .tools import TOOLS_A_PAGE, write_tool

_MARK = b"\x01"

RESOURCES_A_PAGE = 100

T = TypeVar("T")


class Catalog:
    """Answers an MCP client's requests for tools, resources, prompts and completions.

    :param session: the launcher's settings for the agent.
    """

    def __init__(self, offers: ITools, session: SessionEnvironment) -> None:
        self._offers = offers
        self._session = session

    async def tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        """Answer C{tools/list}.

        :raises MCPError: if the cursor is invalid.
        """
        client = identify_client(ctx, self._session)
        offered = await self._offers.offered(hears_changes=client.hears_changes)
        shown, cursor = page(offered, _tool_key, params, TOOLS_A_PAGE)
        tools = [to_tool(definition, asked=client.shows_forms) for definition in shown]
        return t.ListToolsResult(tools=tools, next_cursor=cursor)

    async def resources(self, _ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
        """Answer C{resources/list}: the session's runs, then a document for each action.

        :raises MCPError: if the cursor is invalid.
        """
        there = sorted([_RUNS, *map(_resource, await self._offers.actions())], key=_resource_key)
        shown, cursor = page(there, _resource_key, params, RESOURCES_A_PAGE)
        return t.ListResourcesResult(resources=list(shown), next_cursor=cursor)

    async def templates(self, _ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourceTemplatesResult:
        """Answer C{resources/templates/list}.

        :raises MCPError: if the cursor is invalid.
        """
        shown, _ = page(_TEMPLATES, lambda template: template.name, params, len(_TEMPLATES))
        return t.ListResourceTemplatesResult(resource_templates=list(shown))

    async def read(self, _ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        """Answer C{resources/read} with the list of runs, a run, an attachment or an action's document.

        :raises MCPError: if there is no such resource, or the daemon did not return it.
        """
        if params.uri == RUNS_URI:
            return _contents(params.uri, RUNS_TYPE, await self._runs())
        if run_id := parse_run_uri(params.uri):
            return _contents(params.uri, RUN_TYPE, render_status(await self._run(params.uri, run_id)).text)
        if place := parse_attachment_uri(params.uri):
            return await self._attachment(params.uri, *place)
        definition = find_action_by_uri(params.uri, await self._offers.actions())
        return _contents(params.uri, ACTION_TYPE, render_action(definition))

    async def _runs(self) -> str:
        try:
            runs = await self._offers.recent_runs()
        except DaemonError as error:
            raise MCPError(t.INTERNAL_ERROR, str(error)) from None
        return json.dumps({"runs": list(runs)}, ensure_ascii=False, indent=1)

    async def _attachment(self, uri: str, run_id: str, number: int) -> t.ReadResourceResult:
        _, attachments = set_apart(run_output(await self._run(uri, run_id)))
        if not 0 < number <= len(attachments):
            raise resource_not_found(uri)
        return t.ReadResourceResult(contents=[to_resource(uri, attachments[number - 1])])

    async def _run(self, uri: str, run_id: str) -> Mapping[str, Any]:
        try:
            return await self._offers.run_status(run_id)
        except DaemonError as error:
            if isinstance(error, DaemonFault) and error.fault.kind == "not_found":
                raise resource_not_found(uri) from None
            raise MCPError(t.INTERNAL_ERROR, str(error)) from None

    async def prompts(self, _ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
        """Answer C{prompts/list}.

        :raises MCPError: if the cursor is invalid.
        """
        shown, _ = page(PROMPTS, lambda each: each.name, params, len(PROMPTS))
        return t.ListPromptsResult(prompts=list(shown))

    async def complete(self, _ctx: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
        """Answer C{completion/complete}.

        :raises MCPError: if there is no such prompt, template or argument, or the daemon did not return the values.
        """
        try:
            return t.CompleteResult(completion=await complete_argument(params.ref, params.argument, self._offers))
        except DaemonError as error:
            raise MCPError(t.INTERNAL_ERROR, str(error)) from None


def to_tool(definition: ToolDefinition, *, asked: bool = False) -> t.Tool:
    """Convert a definition to the SDK's tool, as L{write_tool} does to JSON."""
    return t.Tool.model_validate(write_tool(definition, asked=asked), by_name=False)


_RUNS = t.Resource(
    uri=RUNS_URI,
    name="runs",
    title="Recent runs of this session",
    description="What was called lately, and how it stands.",
    mime_type=RUNS_TYPE,
)
_TEMPLATES = (
    t.ResourceTemplate(
        uri_template=ACTION_TEMPLATE,
        name="action",
        title="An action's documentation",
        description="What it does, whether it needs approval, and its arguments.",
        mime_type=ACTION_TYPE,
    ),
    t.ResourceTemplate(
        uri_template=RUN_TEMPLATE,
        name="run",
        title="What came of a call",
        description="How a run of this session stands, and its result.",
        mime_type=RUN_TYPE,
    ),
    t.ResourceTemplate(
        uri_template=ATTACHMENT_TEMPLATE,
        name="attachment",
        title="What is attached to a result",
        description="A picture, sound or document of a run of this session, counted from 1.",
    ),
)


def _resource(definition: ToolDefinition) -> t.Resource:
    return t.Resource(
        uri=action_uri(definition),
        name=str(definition.action),
        title=definition.title,
        description=definition.about or None,
        mime_type=ACTION_TYPE,
    )


def _contents(uri: str, kind: str, text: str) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=uri, mime_type=kind, text=text)])


def _tool_key(definition: ToolDefinition) -> str:
    return f"{'our' if definition.action is None else 'action'} {definition.name}"


def _resource_key(resource: t.Resource) -> str:
    return f"{'runs' if resource.uri == RUNS_URI else 'to read'} {resource.name}"


def page(
    things: Sequence[T], key: Callable[[T], str], params: t.PaginatedRequestParams | None, size: int
) -> tuple[Sequence[T], str | None]:
    """Return one page of C{things}, and the cursor of the next page, or None if this is the last page.

    :param things: all things, sorted by C{key}.
    :param key: returns the unique sort key of a thing.
    :param params: the parameters of the request. Without a cursor, return the first page.
    :raises MCPError: if the cursor is invalid.
    """
    behind = None if params is None or params.cursor is None else _read(params.cursor)
    left = [thing for thing in things if behind is None or key(thing) > behind]
    shown = left[:size]
    return shown, _write(key(shown[-1])) if len(left) > size else None


def _write(key: str) -> str:
    return base64.urlsafe_b64encode(_MARK + key.encode()).decode("ascii").rstrip("=")


def _read(cursor: str) -> str:
    try:
        whole = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        key = whole.removeprefix(_MARK).decode()
    except (binascii.Error, ValueError):
        raise MCPError(t.INVALID_PARAMS, "no such cursor") from None
    if not whole.startswith(_MARK) or _write(key) != cursor:
        raise MCPError(t.INVALID_PARAMS, "no such cursor")
    return key
