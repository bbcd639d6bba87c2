"""Who hears of changes, in both eras of the protocol.  Everything here runs in the asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent
from mcp.shared.subscriptions import event_to_notification

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
        if told := self._wanted(event):
            self._due.update(dict.fromkeys(told))
            self._news.set()

    def _wanted(self, event: ServerEvent) -> Sequence[ServerEvent]:
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

    async def publish(self, *events: ServerEvent) -> None:
        """Have everyone told who wants to hear of these; nobody is waited for."""
        for event in events:
            await self.bus.publish(event)

    def subscriber(self, session: ServerSession) -> Subscriber | None:
        """The client of a connection, if it has shaken hands."""
        return self.subscribers.get(_key(session))

    async def remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The SDK's middleware: have a client hear from the end of its handshake on.

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
        try:
            await subscriber.tell()
        finally:
            leave()
            del self.subscribers[key]


def _key(session: ServerSession) -> int:
    return id(session.client_params)  # of one connection as long as it lasts
