"""The SDK's server over our tools, in both eras of the protocol.  Everything here runs in the asyncio loop."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import mcp.types as t
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from aileron import __version__
from aileron.values import JSON, plain

from ._cards import Card
from ._texts import Said

BEAT_SECONDS = 10.0
"""Well inside the 60 s after which clients give up a call that stays silent."""

INSTRUCTIONS = (
    "These tools act in the world through Aileron, which holds the keys and asks the user where that is wanted. "
    "A call that answers as pending has not been done: show the user its message, and ask check_action_status later. "
    "If tools are missing or fail, aileron_diagnostics tells why."
)

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


class ITools(Protocol):
    """What is offered, as awaited from the loop."""

    async def offered(self) -> Sequence[Card]:
        """Every tool."""

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> Said:
        """Call one."""


class ToolServer:
    """One MCP server.

    :ivar server: the SDK's, ready to run over any transport.
    """

    def __init__(self, tools: ITools, beat_seconds: float = BEAT_SECONDS) -> None:
        self._tools = tools
        self._beat = beat_seconds
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[int, ServerSession] = {}
        self.server: Server[Any] = Server(
            "aileron",
            version=__version__,
            title="Aileron",
            instructions=INSTRUCTIONS,
            cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="private")},
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.server.middleware.append(self._remember)

    def options(self) -> InitializationOptions:
        """What C{initialize} promises."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def announce_change(self) -> None:
        """Tell every client that the list of tools is another, each in the way of its era."""
        await self._bus.publish(ToolsListChanged())
        for session in self._sessions.values():
            await session.send_tool_list_changed()

    async def _remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "notifications/initialized":
            # The proxy is the request's, but the channel behind it lives as long as the connection.
            self._sessions[id(ctx.session)] = ctx.session
        return await call_next(ctx)

    async def _list(self, _ctx: Context, _params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[_tool(card) for card in await self._tools.offered()])

    async def _call(self, ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        try:
            return _result(await self._alive(ctx, params))
        except Exception:  # noqa: BLE001 - the rim: what is said here reaches the model, so it says nothing of the inside
            _log.exception("a tool call failed")
            return _result(Said("Aileron's MCP server failed; whether anything was done is not known.", is_error=True))

    async def _alive(self, ctx: Context, params: t.CallToolRequestParams) -> Said:
        """The call's answer; until it comes, the client hears that it is still under way."""
        beating: list[asyncio.Task[None]] = []  # begun when it is due: most calls are answered before
        loop = asyncio.get_running_loop()
        first = loop.call_later(self._beat, lambda: beating.append(loop.create_task(self._tell_on(ctx))))
        try:
            return await self._tools.call(params.name, params.arguments or {})
        finally:
            first.cancel()
            for telling in beating:
                telling.cancel()

    async def _tell_on(self, ctx: Context) -> None:
        """Say again and again that the call is under way."""
        for beats in itertools.count(1):
            try:
                await ctx.session.report_progress(beats, None, "Waiting for the action, or for the user's approval.")
            except Exception:  # noqa: BLE001 - a rim: the call goes on whether or not somebody hears of it
                _log.exception("progress could not be told")
            await asyncio.sleep(self._beat)


def _tool(card: Card) -> t.Tool:
    hints = t.ToolAnnotations(
        title=card.title,
        read_only_hint=card.read_only,
        destructive_hint=not card.read_only,
        idempotent_hint=card.idempotent,
        open_world_hint=card.action is not None,
    )
    schema: Any = plain(card.input_schema)
    return t.Tool(
        name=card.name, title=card.title, description=card.description, input_schema=schema, annotations=hints
    )


def _result(said: Said) -> t.CallToolResult:
    # No structured content: some clients would show it instead of the text, and lose what the text adds.
    return t.CallToolResult(content=[t.TextContent(text=said.text)], is_error=said.is_error)
