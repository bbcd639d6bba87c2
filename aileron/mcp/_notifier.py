"""Tells clients of changes, in both eras of the protocol.  Everything here runs in the asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import mcp.types as t
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification

from ._contents import RUNS_URI, action_uri, find_action_by_uri
from ._definitions import ToolDefinition
from .offering.access import render_action

MOST_SUBSCRIPTIONS = 256

Context = ServerRequestContext[Any, Any]


class Subscriber:
    """One client that has shaken hands, as long as its connection lasts.

    It hears of every list, and of the documents that it subscribed to.
    """

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._known_by = session.client_params  # kept, so that no other connection's can have its place in memory
        self._left = False
        self._subscribed: dict[str, str] = {}
        self._due: dict[ServerEvent, None] = {}  # in order; each once, however often it happens meanwhile
        self._news = asyncio.Event()

    def subscribe(self, uri: str, document: str) -> bool:
        """Have it hear of a document.  Twice is once.

        :param uri: as it is to be called when it is told.
        :param document: its address as it is listed.
        :return: whether there was room for that.
        """
        if uri not in self._subscribed and len(self._subscribed) >= MOST_SUBSCRIPTIONS:
            return False
        self._subscribed[uri] = document
        return True

    def unsubscribe(self, uri: str) -> None:
        """Have it hear no more of a document.  Twice is safe, and so is once without a subscription."""
        self._subscribed.pop(uri, None)
        self._due.pop(ResourceUpdated(uri), None)

    def hear(self, event: ServerEvent) -> None:
        """Have it told soon, if it wants to hear of that."""
        if told := self._is_wanted(event):
            self._due.update(dict.fromkeys(told))
            self._news.set()

    def _is_wanted(self, event: ServerEvent) -> Sequence[ServerEvent]:
        if not isinstance(event, ResourceUpdated):
            return (event,)
        return [ResourceUpdated(uri) for uri, document in self._subscribed.items() if document == event.uri]

    def leave(self) -> None:
        """Tell it no more.  Twice is safe."""
        self._left = True
        self._due.clear()
        self._news.set()

    async def tell(self) -> None:
        """Tell it what it is to hear, until it leaves.  One that does not read makes only this wait."""
        while not self._left:
            await self._news.wait()
            self._news.clear()
            while self._due:
                event = next(iter(self._due))
                del self._due[event]
                await self._session.send_notification(event_to_notification(event, {}))


class ChangeNotifier:
    """Every client that hears.

    :ivar bus: what changes is published there; clients without a handshake listen to it.
    :ivar subscribers: the clients with a handshake, by a key that each connection has of its own.
    """

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.subscribers: dict[int, Subscriber] = {}
        self._missed: tuple[ServerEvent, ...] = ()

    async def publish(self, *events: ServerEvent) -> None:
        """Notify everybody who subscribed to these; nothing is waited for."""
        for event in events:
            await self.bus.publish(event)

    def tell_first(self, *events: ServerEvent) -> None:
        """Notify the clients that are there of these events; if none is there yet, the first one that comes."""
        for subscriber in self.subscribers.values():
            for event in events:
                subscriber.hear(event)
        self._missed = () if self.subscribers else events

    def subscriber(self, session: ServerSession) -> Subscriber | None:
        """Find the client of a connection, if it has shaken hands."""
        return self.subscribers.get(_key(session))

    async def remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Have a client hear from the end of its handshake on, as the SDK's middleware.

        One that shakes hands anew begins anew, without what it had subscribed to.
        """
        before = self.subscriber(ctx.session)
        result = await call_next(ctx)
        if ctx.method == "initialize" and before is not None:
            before.leave()
        if ctx.method == "notifications/initialized":
            await self._keep(ctx.session)
        return result

    async def _keep(self, session: ServerSession) -> None:
        """Have a client hear until its connection ends, which ends the handling of its notifications."""
        key = _key(session)
        if session.client_params is None or key in self.subscribers:
            return
        subscriber = self.subscribers[key] = Subscriber(session)
        leave = self.bus.subscribe(subscriber.hear)
        missed, self._missed = self._missed, ()
        for event in missed:
            subscriber.hear(event)
        try:
            await subscriber.tell()
        finally:
            leave()
            del self.subscribers[key]


def _key(session: ServerSession) -> int:
    return id(session.client_params)  # of one connection as long as it lasts


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
        """Return all present actions, and notify the subscribers of documents that changed, appeared or disappeared."""
        definitions = await self._actions()
        before, self._known = self._known, {action_uri(definition): definition for definition in definitions}
        for address in sorted(before.keys() | self._known.keys()):
            if _differ(before.get(address), self._known.get(address)):
                await self._notifier.publish(ResourceUpdated(address))
        return definitions

    async def _address(self, uri: str) -> str:
        """Write the address, as it is listed, of a document that is there.

        :raises MCPError: it is not.
        """
        # It is looked at now, so that what changed before is no news to who subscribes.
        return RUNS_URI if uri == RUNS_URI else action_uri(find_action_by_uri(uri, await self.look()))


def _differ(before: ToolDefinition | None, now: ToolDefinition | None) -> bool:
    """Return whether the documents of two definitions differ, or one of them is missing."""
    if before is None or now is None:
        return before is not now
    return before != now and render_action(before) != render_action(now)
