"""Who hears of changes: clients that read slowly, that have gone, that shake hands anew."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp.types as t
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._server import ToolServer
from tests.mcp.case import in_a_loop
from tests.mcp.test_server import connected, serving

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
RUNS = "aileron://runs"
UPDATED = ("notifications/resources/updated", RUNS)
TOOLS, RESOURCES = ("notifications/tools/list_changed", None), ("notifications/resources/list_changed", None)


class ByHand:
    """A client that reads only when it is told to."""

    def __init__(self, inbox: Any, outbox: Any) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._number = 0

    async def tell(self, method: str) -> None:
        """Send a notification."""
        await self._outbox.send(SessionMessage(t.JSONRPCNotification(jsonrpc="2.0", method=method)))

    async def ask(self, method: str, **params: Any) -> list[tuple[str, str | None]]:
        """Send a request and read until it is answered; what was told before that."""
        self._number += 1
        request = t.JSONRPCRequest(jsonrpc="2.0", id=self._number, method=method, params=params)
        await self._outbox.send(SessionMessage(request))
        told: list[tuple[str, str | None]] = []
        while not isinstance(message := (await self._inbox.receive()).message, t.JSONRPCResponse):
            told.append((message.method, (message.params or {}).get("uri")))
        return told

    async def shake_hands(self) -> None:
        """Begin, or begin anew."""
        await self.ask("initialize", **HELLO)
        await self.tell("notifications/initialized")
        await self.ask("ping")


@asynccontextmanager
async def connected_by_hand(server: ToolServer) -> AsyncIterator[ByHand]:
    """A client that has said nothing yet."""
    async with create_client_server_memory_streams() as (ours, its):
        promised = server.server.create_initialization_options()
        running = asyncio.ensure_future(server.server.run(*its, promised))
        yield ByHand(*ours)
        running.cancel()
        await asyncio.wait([running])


@asynccontextmanager
async def by_hand(server: ToolServer) -> AsyncIterator[ByHand]:
    """A client that has shaken hands and subscribed to the session's runs."""
    async with connected_by_hand(server) as client:
        await client.shake_hands()
        await client.ask("resources/subscribe", uri=RUNS)
        yield client


class HearingTests(SynchronousTestCase):
    """Clients of the older era."""

    @in_a_loop
    async def test_silent_client(self) -> None:
        """One that does not read keeps no other from hearing; it hears of each thing once, as soon as it reads."""
        server = serving()
        heard = asyncio.Event()

        async def hear(message: object) -> None:
            if isinstance(message, t.ResourceListChangedNotification):
                heard.set()

        async with by_hand(server) as silent, connected(server, "legacy", message_handler=hear) as client:
            await client.list_tools()
            for _ in range(20):
                await server.notifier.publish(ResourceUpdated(RUNS), ToolsListChanged(), ResourcesListChanged())
                heard.clear()
                await server.notifier.publish(ResourcesListChanged())
                await heard.wait()
            told = await silent.ask("ping")
            while told.count(UPDATED) < 2:
                told += await silent.ask("ping")
        # One was under way while it did not read, and may be told again: it may have changed since.
        self.assertEqual(told[:4], [UPDATED, TOOLS, RESOURCES, UPDATED])
        self.assertEqual(len(told), len(set(told)) + 1)

    @in_a_loop
    async def test_unsubscribed_in_time(self) -> None:
        """What is due is not told any more to who wants it no longer."""
        server = serving()
        async with by_hand(server) as client:
            [subscriber] = server.notifier.subscribers.values()
            subscriber.queue_event(ToolsListChanged())
            subscriber.queue_event(ResourceUpdated(RUNS))
            subscriber.unsubscribe(RUNS)
            subscriber.queue_event(ResourcesListChanged())
            told: list[Any] = []
            while RESOURCES not in told:
                told += await client.ask("ping")
        self.assertEqual(told, [TOOLS, RESOURCES])

    @in_a_loop
    async def test_said_again(self) -> None:
        """Who says again that the handshake is over is told once; who never began it is no one to tell."""
        server = serving()
        async with by_hand(server) as client:
            for _ in range(3):
                await client.tell("notifications/initialized")
            await client.ask("ping")
            await server.notifier.publish(ToolsListChanged())
            self.assertEqual([*await client.ask("ping"), *await client.ask("ping")], [TOOLS])
        async with connected_by_hand(server) as stranger:
            await stranger.tell("notifications/initialized")
            await stranger.ask("ping")
            self.assertEqual(server.notifier.subscribers, {})

    @in_a_loop
    async def test_left(self) -> None:
        """Who has left is told nothing, be it due or new, and is kept nowhere."""
        gc.freeze()  # the collector looks at nothing that was there before
        self.addCleanup(gc.unfreeze)
        server = serving()
        async with by_hand(server) as client:
            [subscriber] = server.notifier.subscribers.values()
            subscriber.queue_event(ToolsListChanged())
            subscriber.stop()
            subscriber.stop()
            self.assertEqual([*await client.ask("ping"), *await client.ask("ping")], [])
            self.assertEqual(server.notifier.subscribers, {})
            kept = weakref.ref(subscriber)
            del subscriber
            gc.collect()
            self.assertIsNone(kept())

    @in_a_loop
    async def test_anew(self) -> None:
        """Who shakes hands anew is one client still, told once, without what it had subscribed to."""
        server = serving()
        async with by_hand(server) as client:
            for _ in range(3):
                await client.shake_hands()
            while len(server.notifier.subscribers) > 1:
                await client.ask("ping")
            await server.notifier.publish(ResourceUpdated(RUNS), ToolsListChanged())
            told: list[Any] = []
            while TOOLS not in told:
                told += await client.ask("ping")
            told += await client.ask("ping")
        self.assertEqual(told, [TOOLS])
        self.assertEqual(server.notifier.subscribers, {})
