"""Notifies MCP clients of changes, both those with and those without a handshake. All code runs in the asyncio loop."""

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
    """One MCP client that completed the handshake, until its connection ends.

    The client is notified of changes to every list and to the documents that it subscribed to.
    """

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._known_by = session.client_params  # the reference keeps the object alive, so that its id stays unique
        self._left = False
        self._subscribed: dict[str, str] = {}
        self._due: dict[ServerEvent, None] = {}  # in order, without duplicates
        self._news = asyncio.Event()

    def subscribe(self, uri: str, document: str) -> bool:
        """Subscribe to a document. Idempotent.

        :param uri: the URI to name in notifications.
        :param document: the document's URI as listed.
        :return: False if the limit of subscriptions is reached.
        """
        if uri not in self._subscribed and len(self._subscribed) >= MOST_SUBSCRIPTIONS:
            return False
        self._subscribed[uri] = document
        return True

    def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from a document. Without a subscription, do nothing."""
        self._subscribed.pop(uri, None)
        self._due.pop(ResourceUpdated(uri), None)

    def queue_event(self, event: ServerEvent) -> None:
        """Queue a notification of a change: of any list, or of a document if the client subscribed to it."""
        if told := self._is_wanted(event):
            self._due.update(dict.fromkeys(told))
            self._news.set()

    def _is_wanted(self, event: ServerEvent) -> Sequence[ServerEvent]:
        if not isinstance(event, ResourceUpdated):
            return (event,)
        return [ResourceUpdated(uri) for uri, document in self._subscribed.items() if document == event.uri]

    def stop(self) -> None:
        """Stop notifying the client. Idempotent."""
        self._left = True
        self._due.clear()
        self._news.set()

    async def send_queued(self) -> None:
        """Send queued notifications until L{stop} is called. A client that does not read delays only itself."""
        while not self._left:
            await self._news.wait()
            self._news.clear()
            while self._due:
                event = next(iter(self._due))
                del self._due[event]
                await self._session.send_notification(event_to_notification(event, {}))


class ChangeNotifier:
    """All clients that receive notifications.

    :ivar bus: the bus of changes, which clients without a handshake listen to.
    :ivar subscribers: the clients with a handshake, by a key unique to each connection.
    """

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.subscribers: dict[int, Subscriber] = {}
        self._missed: tuple[ServerEvent, ...] = ()

    async def publish(self, *events: ServerEvent) -> None:
        """Queue these events for all subscribers, without waiting until they are sent."""
        for event in events:
            await self.bus.publish(event)

    def publish_or_defer(self, *events: ServerEvent) -> None:
        """Notify the connected clients of these events. If none is connected, notify the first client that connects."""
        for subscriber in self.subscribers.values():
            for event in events:
                subscriber.queue_event(event)
        self._missed = () if self.subscribers else events

    def subscriber(self, session: ServerSession) -> Subscriber | None:
        """Return the subscriber of a connection, or None if the connection has not completed the handshake."""
        return self.subscribers.get(_key(session))

    async def remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Run as middleware of the SDK: register a client at the end of its handshake, until its connection ends.

        Return the handler's result. A repeated handshake drops the client's earlier subscriptions.
        """
        before = self.subscriber(ctx.session)
        result = await call_next(ctx)
        if ctx.method == "initialize" and before is not None:
            before.stop()
        if ctx.method == "notifications/initialized":
            await self._keep(ctx.session)
        return result

    async def _keep(self, session: ServerSession) -> None:
        """Send notifications to a client until its connection ends, which cancels this coroutine.

        Then unregister the client.
        """
        key = _key(session)
        if session.client_params is None or key in self.subscribers:
            return
        subscriber = self.subscribers[key] = Subscriber(session)
        leave = self.bus.subscribe(subscriber.queue_event)
        missed, self._missed = self._missed, ()
        for event in missed:
            subscriber.queue_event(event)
        try:
            await subscriber.send_queued()
        finally:
            leave()
            del self.subscribers[key]


def _key(session: ServerSession) -> int:
    return id(session.client_params)  # for the lifetime of one connection


_TOO_MANY = f"At most {MOST_SUBSCRIPTIONS} documents can be subscribed to at once."
_TOO_EARLY = "Send notifications/initialized first: until then nothing is told."


class Subscriptions:
    """The handlers of subscription requests. They also notify subscribers of an action's document when it changes.

    :param actions: returns all current actions.
    """

    def __init__(self, actions: Callable[[], Awaitable[Sequence[ToolDefinition]]], notifier: ChangeNotifier) -> None:
        self._actions = actions
        self._notifier = notifier
        self._listening = ListenHandler(notifier.bus)
        self._known: Mapping[str, ToolDefinition] = {}

    async def subscribe(self, ctx: Context, params: t.SubscribeRequestParams) -> t.EmptyResult:
        """Answer C{resources/subscribe}.

        :raises MCPError: if there is no such document, the client has not completed the handshake, or the limit is
            reached.
        """
        address = await self._address(params.uri)
        subscriber = self._notifier.subscriber(ctx.session)
        if subscriber is None:
            raise MCPError(t.INVALID_REQUEST, _TOO_EARLY)
        if not subscriber.subscribe(params.uri, address):
            raise MCPError(t.INVALID_REQUEST, _TOO_MANY)
        return t.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: t.UnsubscribeRequestParams) -> t.EmptyResult:
        """Answer C{resources/unsubscribe}. The document need not exist any more."""
        subscriber = self._notifier.subscriber(ctx.session)
        if subscriber is not None:
            subscriber.unsubscribe(params.uri)
        return t.EmptyResult()

    async def listen(self, ctx: Context, params: t.SubscriptionsListenRequestParams) -> t.SubscriptionsListenResult:
        """Answer C{subscriptions/listen}, by which a client without a handshake receives notifications.

        :raises MCPError: if the client subscribes to too many documents.
        """
        if len(params.notifications.resource_subscriptions or ()) > MOST_SUBSCRIPTIONS:
            raise MCPError(t.INVALID_PARAMS, _TOO_MANY)
        return await self._listening(ctx, params)

    async def refresh_actions(self) -> Sequence[ToolDefinition]:
        """Return all current actions. Notify the subscribers of documents that changed, appeared or disappeared."""
        definitions = await self._actions()
        before, self._known = self._known, {action_uri(definition): definition for definition in definitions}
        for address in sorted(before.keys() | self._known.keys()):
            if _differ(before.get(address), self._known.get(address)):
                await self._notifier.publish(ResourceUpdated(address))
        return definitions

    async def _address(self, uri: str) -> str:
        """Return the URI under which the document at C{uri} is listed. The two may be encoded differently.

        :raises MCPError: if there is no such document.
        """
        # The documents are read now, so that earlier changes are not reported to the new subscriber.
        return RUNS_URI if uri == RUNS_URI else action_uri(find_action_by_uri(uri, await self.refresh_actions()))


def _differ(before: ToolDefinition | None, now: ToolDefinition | None) -> bool:
    """Return whether the documents of two definitions differ, or one of the definitions is missing."""
    if before is None or now is None:
        return before is not now
    return before != now and render_action(before) != render_action(now)
