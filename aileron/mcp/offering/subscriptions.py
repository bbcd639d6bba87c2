"""Subscriptions to single documents, in both eras of the protocol.  Everything here runs in the asyncio loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import mcp.types as t
from mcp.server.subscriptions import ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from aileron.mcp._definitions import ToolDefinition
from aileron.mcp._notifier import MOST_SUBSCRIPTIONS, ChangeNotifier, Context

from .access import document
from .documents import RUNS_URI, action_at, address_of

_TOO_MANY = f"At most {MOST_SUBSCRIPTIONS} documents can be subscribed to at once."
_TOO_EARLY = "Send notifications/initialized first: until then nothing is told."


class Subscriptions:
    """Handlers for a server; and who subscribed to an action's document hears when that is another.

    :param actions: every action there is now.
    """

    def __init__(self, actions: Callable[[], Awaitable[Sequence[ToolDefinition]]], notifier: ChangeNotifier) -> None:
        self._actions = actions
        self._notifier = notifier
        self._listening = ListenHandler(notifier.bus)
        self._known: Mapping[str, ToolDefinition] = {}

    async def subscribe(self, ctx: Context, params: t.SubscribeRequestParams) -> t.EmptyResult:
        """Answer C{resources/subscribe}."""
        address = await self._address(params.uri)
        subscriber = self._notifier.subscriber(ctx.session)
        if subscriber is None:
            raise MCPError(t.INVALID_REQUEST, _TOO_EARLY)
        if not subscriber.subscribe(params.uri, address):
            raise MCPError(t.INVALID_REQUEST, _TOO_MANY)
        return t.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: t.UnsubscribeRequestParams) -> t.EmptyResult:
        """Answer C{resources/unsubscribe}, of a document that is no more, too."""
        subscriber = self._notifier.subscriber(ctx.session)
        if subscriber is not None:
            subscriber.unsubscribe(params.uri)
        return t.EmptyResult()

    async def listen(self, ctx: Context, params: t.SubscriptionsListenRequestParams) -> t.SubscriptionsListenResult:
        """Answer C{subscriptions/listen}, by which a client without a handshake hears."""
        if len(params.notifications.resource_subscriptions or ()) > MOST_SUBSCRIPTIONS:
            raise MCPError(t.INVALID_PARAMS, _TOO_MANY)
        return await self._listening(ctx, params)

    async def look(self) -> Sequence[ToolDefinition]:
        """Every action there is now; whoever subscribed to a document that is another, came or went, is told."""
        definitions = await self._actions()
        before, self._known = self._known, {address_of(definition): definition for definition in definitions}
        for address in sorted(before.keys() | self._known.keys()):
            if _differ(before.get(address), self._known.get(address)):
                await self._notifier.publish(ResourceUpdated(address))
        return definitions

    async def _address(self, uri: str) -> str:
        """The address, as it is listed, of a document that is there.

        :raises MCPError: it is not.
        """
        # It is looked at now, so that what changed before is no news to who subscribes.
        return RUNS_URI if uri == RUNS_URI else address_of(action_at(uri, await self.look()))


def _differ(before: ToolDefinition | None, now: ToolDefinition | None) -> bool:
    """Return whether the documents of two definitions differ, or one of them is missing."""
    if before is None or now is None:
        return before is not now
    return before != now and document(before) != document(now)
