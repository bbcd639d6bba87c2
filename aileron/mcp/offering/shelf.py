"""The lists and documents of the SDK's server: tools, resources, prompts, and what completes their arguments.

Everything here runs in the asyncio loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import mcp.types as t
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from aileron.mcp._cards import Card
from aileron.mcp._texts import Said
from aileron.values import plain

from .access import document
from .completion import NoCompletion, completion
from .documents import ACTION_TEMPLATE, ACTION_TYPE, RUNS_TYPE, RUNS_URI, action_at, address_of
from .pages import BadCursor, page
from .prompts import PROMPTS, NoPrompt, prompt
from .structure import wrapped

TOOLS_A_PAGE = 250  # not every client asks for a second
RESOURCES_A_PAGE = 100

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


class IOffers(Protocol):
    """What there is to be listed and read, as awaited from the loop."""

    async def offered(self, *, hears_changes: bool) -> Sequence[Card]:
        """Every tool that is listed, in order: actions by name, then our own by name.

        :param hears_changes: whether who asks will hear of what is added; if not, those that lead to it are there.
        """

    async def actions(self) -> Sequence[Card]:
        """Every action, listed or not, by name."""

    async def recent_runs(self) -> Said:
        """The session's newest runs as JSON; an error where they cannot be told."""


class Shelf:
    """Handlers for a server.

    :param hears_changes: whether the client of a request hears that the list of tools is another.
    """

    def __init__(self, offers: IOffers, hears_changes: Callable[[Context], bool]) -> None:
        self._offers = offers
        self._hears_changes = hears_changes

    async def tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        """Answer C{tools/list}."""
        offered = await self._offers.offered(hears_changes=self._hears_changes(ctx))
        shown, cursor = _page(offered, _tool_key, params, TOOLS_A_PAGE)
        return t.ListToolsResult(tools=[tool_of(card) for card in shown], next_cursor=cursor)

    async def resources(self, _ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
        """Answer C{resources/list}: the session's runs, then a document for each action."""
        there = sorted([_RUNS, *map(_resource, await self._offers.actions())], key=_resource_key)
        shown, cursor = _page(there, _resource_key, params, RESOURCES_A_PAGE)
        return t.ListResourcesResult(resources=list(shown), next_cursor=cursor)

    async def templates(self, _ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourceTemplatesResult:
        """Answer C{resources/templates/list}."""
        shown, _ = _page((_TEMPLATE,), lambda template: template.name, params, 1)
        return t.ListResourceTemplatesResult(resource_templates=list(shown))

    async def read(self, _ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        """Answer C{resources/read}."""
        if params.uri == RUNS_URI:
            said = await self._offers.recent_runs()
            if said.is_error:
                raise MCPError(t.INTERNAL_ERROR, said.text)
            return _contents(params.uri, RUNS_TYPE, said.text)
        card = action_at(params.uri, await self._offers.actions())
        return _contents(params.uri, ACTION_TYPE, document(card))

    async def prompts(self, _ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
        """Answer C{prompts/list}."""
        shown, _ = _page(PROMPTS, lambda each: each.name, params, len(PROMPTS))
        return t.ListPromptsResult(prompts=list(shown))

    async def prompt(self, _ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        """Answer C{prompts/get}."""
        try:
            return prompt(params.name, params.arguments or {}, await self._offers.actions())
        except NoPrompt as error:
            raise MCPError(t.INVALID_PARAMS, str(error)) from None

    async def complete(self, _ctx: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
        """Answer C{completion/complete}."""
        try:
            found = completion(params.ref, params.argument, await self._offers.actions())
        except NoCompletion as error:
            raise MCPError(t.INVALID_PARAMS, str(error)) from None
        return t.CompleteResult(completion=found)


def tool_of(card: Card) -> t.Tool:
    """A tool as the protocol has it."""
    hints = t.ToolAnnotations(
        title=card.title,
        read_only_hint=card.read_only,
        destructive_hint=card.destructive,
        idempotent_hint=card.idempotent,
        open_world_hint=card.open_world,
    )
    schema: Any = plain(card.input_schema)
    output: Any = None if card.output_schema is None else plain(wrapped(card.output_schema))
    return t.Tool(
        name=card.name,
        title=card.title,
        description=card.description,
        input_schema=schema,
        output_schema=output,
        annotations=hints,
    )


_RUNS = t.Resource(
    uri=RUNS_URI,
    name="runs",
    title="Recent runs of this session",
    description="What was called lately, and how it stands.",
    mime_type=RUNS_TYPE,
)
_TEMPLATE = t.ResourceTemplate(
    uri_template=ACTION_TEMPLATE,
    name="action",
    title="An action's documentation",
    description="What it does, whether it needs approval, and its arguments.",
    mime_type=ACTION_TYPE,
)


def _resource(card: Card) -> t.Resource:
    return t.Resource(
        uri=address_of(card),
        name=str(card.action),
        title=card.title,
        description=card.about or None,
        mime_type=ACTION_TYPE,
    )


def _contents(uri: str, kind: str, text: str) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=uri, mime_type=kind, text=text)])


def _tool_key(card: Card) -> str:
    return f"{'our' if card.action is None else 'action'} {card.name}"


def _resource_key(resource: t.Resource) -> str:
    return f"{'runs' if resource.uri == RUNS_URI else 'to read'} {resource.name}"


def _page(
    things: Sequence[T], key: Callable[[T], str], params: t.PaginatedRequestParams | None, size: int
) -> tuple[Sequence[T], str | None]:
    try:
        return page(things, key, None if params is None else params.cursor, size)
    except BadCursor as error:
        raise MCPError(t.INVALID_PARAMS, str(error)) from None
