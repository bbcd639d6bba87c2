"""The server, in the place of an agent's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mcp.types as t
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from twisted.internet.defer import CancelledError, Deferred

from . import documents, prompts
from .answers import Context, ToolAnswer, Tools
from .asking import ASKING
from .rounds import ROUNDS
from .showing import SHOWING
from .telling import telling

_NAME = "everything"
_CACHED: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
)
_ANY: Mapping[str, Any] = {"type": "object"}
_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "test_x_mcp_header": {**_ANY, "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}


class Everything:
    """What an agent's server serves to a judge.

    :param sealing: of that server; the judge must not be able to change what it is given to bring back.
    :ivar server: the SDK's.
    """

    def __init__(self, sealing: RequestStateSecurity) -> None:
        bus = InMemorySubscriptionBus()
        self._tools: Tools = {**SHOWING, **telling(bus), **ASKING, **ROUNDS}
        self.server: Server[Any] = Server(
            _NAME,
            version="1",
            cache_hints=dict.fromkeys(_CACHED, CacheHint(ttl_ms=0, scope="private")),
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=documents.resources,
            on_list_resource_templates=documents.templates,
            on_read_resource=documents.read,
            on_subscribe_resource=documents.subscribe,
            on_unsubscribe_resource=documents.unsubscribe,
            on_list_prompts=prompts.prompts,
            on_get_prompt=prompts.prompt,
            on_completion=prompts.complete,
            on_subscriptions_listen=ListenHandler(bus),
        )
        self.server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, _set_level)
        self.server.middleware.append(RequestStateBoundary(sealing, default_audience=_NAME))

    def start(self) -> None:
        """It follows nothing."""

    def stop(self) -> None:
        """Nothing goes on."""

    def supervise(self, serving: Deferred[None], then: Callable[[], object]) -> None:
        """Have trial see any failure but the end."""
        serving.addErrback(lambda failure: failure.trap(CancelledError))
        serving.addCallback(lambda _: then())

    async def _list(self, _ctx: Context, _params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[_described(name) for name in self._tools])

    async def _call(self, ctx: Context, params: t.CallToolRequestParams) -> ToolAnswer:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(t.INVALID_PARAMS, "There is no such tool.")
        return await tool(ctx, params)


def _described(name: str) -> t.Tool:
    schema = dict(_SCHEMAS.get(name, _ANY))
    return t.Tool(name=name, description=f"Does what a judge expects of {name}.", input_schema=schema)


async def _set_level(_ctx: Context, _params: t.SetLevelRequestParams) -> t.EmptyResult:
    return t.EmptyResult()
