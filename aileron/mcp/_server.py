"""The SDK's server with our tools, for clients with and without a handshake. All code here runs in the asyncio loop."""

from __future__ import annotations

import logging
from typing import Any

import mcp.types as t
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged

from ._contents import RUNS_URI
from ._notifier import ChangeNotifier, Context, Subscriptions
from ._opening import INSTRUCTIONS, SERVER
from ._texts import ToolResult
from ._tools import ITools, NotifyingCalls
from .offering.catalog import Catalog
from .waiting.calling import CallAnswer, CallHandler, ClientPolicy
from .waiting.prompting import Prompting
from .waiting.tasks import to_call_result

_OWN_LISTS: tuple[CacheableMethod, ...] = ("tools/list", "resources/list", "resources/read", "prompts/list")
"""The lists that differ between sessions and may change at any time."""

_log = logging.getLogger(__name__)


class ToolServer:
    """One MCP server.

    :ivar server: the SDK's server, ready to run over any transport.
    :ivar notifier: the clients that receive notifications.
    """

    def __init__(self, tools: ITools, policy: ClientPolicy | None = None) -> None:
        policy = policy or ClientPolicy()
        self.notifier = ChangeNotifier()
        calls = NotifyingCalls(tools, lambda: self.notifier.publish(ResourceUpdated(RUNS_URI)))
        self._calling = CallHandler(calls, policy)
        self._subscriptions = Subscriptions(tools.actions, self.notifier)
        catalog = Catalog(tools, policy.session)
        self.server: Server[Any] = _Promising(
            SERVER["name"],
            version=SERVER["version"],
            title=SERVER["title"],
            instructions=INSTRUCTIONS,
            cache_hints=dict.fromkeys(_OWN_LISTS, CacheHint(ttl_ms=0, scope="private")),
            on_list_tools=catalog.tools,
            on_list_resources=catalog.resources,
            on_list_resource_templates=catalog.templates,
            on_read_resource=catalog.read,
            on_subscribe_resource=self._subscriptions.subscribe,
            on_unsubscribe_resource=self._subscriptions.unsubscribe,
            on_subscriptions_listen=self._subscriptions.listen,
            on_list_prompts=catalog.prompts,
            on_get_prompt=Prompting(tools, policy.session, policy.beats).answer,
            on_completion=catalog.complete,
        )
        # Registered here, because the constructor's handler cannot return a task.
        self.server.add_request_handler("tools/call", t.CallToolRequestParams, self._call)
        self.server.middleware.append(self.notifier.remember)
        self._calling.serve(self.server)

    async def announce_change(self) -> None:
        """Notify every client that the lists of tools and documents changed.

        Subscribers of a changed document are notified as well.
        """
        await self.notifier.publish(ToolsListChanged(), ResourcesListChanged())
        await self._subscriptions.refresh_actions()

    async def announce_missed_change(self) -> None:
        """Notify the client that the lists of tools and documents changed: now, or after its handshake."""
        self.notifier.publish_or_defer(ToolsListChanged(), ResourcesListChanged())

    async def _call(self, ctx: Context, params: t.CallToolRequestParams) -> CallAnswer:
        try:
            return await self._calling.answer(ctx, params)
        except Exception:  # noqa: BLE001 - the model reads the answer, so it contains no internals
            _log.exception("a tool call failed")
            return to_call_result(
                ToolResult("Aileron's MCP server failed; whether anything was sent is not known.", is_error=True)
            )


class _Promising(Server[Any]):
    """The SDK's server, which declares to clients that it sends notifications.

    The SDK's HTTP transport would omit that.
    """

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the capabilities that C{initialize} declares."""
        told = notification_options or NotificationOptions(tools_changed=True, resources_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)
