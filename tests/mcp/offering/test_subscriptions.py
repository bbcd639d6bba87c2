"""Subscriptions to single documents, as the SDK's own client has them in both eras of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp.types as t
from mcp import Client, MCPError
from mcp.server.subscriptions import ResourceUpdated, ServerEvent

from aileron.mcp._definitions import read_definitions
from aileron.mcp._notifier import MOST_SUBSCRIPTIONS
from aileron.mcp._server import ToolServer
from tests.mcp.case import Era, action, in_a_loop, in_both_eras
from tests.mcp.offering.test_catalog import Offered, ShelfCase
from tests.mcp.test_server import connected

RUNS, SHIP, POST = "aileron://runs", "aileron://actions/ship-update", "aileron://actions/post-note"


def both(ship: str = "Ships.", post: str = "Posts.") -> list[dict[str, Any]]:
    """Two actions, described so."""
    return [action(description=ship), action("post-note", description=post)]


class Changing:
    """A server whose actions become others."""

    def __init__(self) -> None:
        self.tools = Offered(*both())
        self.server = ToolServer(self.tools)

    async def change(self, *items: dict[str, Any]) -> None:
        """From now on there are these."""
        self.tools.definitions = read_definitions(items)
        await self.server.announce_change()


class Ear:
    """Hears which documents were updated, in either era, in order.

    :ivar mark: a document that it has subscribed to; nothing else in the test changes it.
    """

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    async def message(self, message: object) -> None:
        """What a client with a handshake hears."""
        if isinstance(message, t.ResourceUpdatedNotification):
            self._heard.put_nowait(message.params.uri)

    def event(self, event: ServerEvent) -> None:
        """What one without hears."""
        if isinstance(event, ResourceUpdated):
            self._heard.put_nowait(event.uri)

    async def all(self, server: ToolServer) -> list[str]:
        """What was heard since the last time."""
        await server.notifier.publish(ResourceUpdated(self.mark))
        heard: list[str] = []
        while not heard or heard[-1] != self.mark:
            heard.append(await self._heard.get())
        return heard[:-1]

    async def one(self) -> str:
        """The next that is heard."""
        return await self._heard.get()


@asynccontextmanager
async def notifier(
    server: ToolServer, era: Era, uris: Sequence[str], mark: str = RUNS
) -> AsyncIterator[tuple[Client, Ear]]:
    """A client that has subscribed to these, and to the mark."""
    ear = Ear(mark)
    if era == "legacy":
        async with connected(server, era, message_handler=ear.message) as client:
            for uri in (*uris, mark):
                await subscribe(client, uri)
            yield client, ear
        return
    async with connected(server, era) as client, client.listen(resource_subscriptions=(*uris, mark)) as events:
        listening = asyncio.ensure_future(_listen(events, ear))
        yield client, ear
        listening.cancel()


async def subscribe(client: Client, uri: str) -> None:
    """Ask to hear of a document."""
    await client.session.send_request(t.SubscribeRequest(params=t.SubscribeRequestParams(uri=uri)), t.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    """Ask to hear no more of it."""
    await client.session.send_request(t.UnsubscribeRequest(params=t.UnsubscribeRequestParams(uri=uri)), t.EmptyResult)


async def _listen(events: Any, ear: Ear) -> None:
    async for event in events:
        ear.event(event)


class ActionTests(ShelfCase):
    """Documents of actions."""

    @in_both_eras
    async def test_changed(self, era: Era) -> None:
        """Who subscribed to a document hears when its text is another, is removed or there again; of no other."""
        changing = Changing()
        await changing.server.announce_change()
        async with notifier(changing.server, era, [SHIP]) as (_client, ear):
            for items, expected in (
                (both(), []),
                ([{**item, "idempotent": True} for item in both()], []),
                (both(ship="Ships it."), [SHIP]),
                (both(ship="Ships it.", post="Posts it."), []),
                (both()[1:], [SHIP]),
                (both()[1:], []),
                (both(), [SHIP]),
            ):
                await changing.change(*items)
                self.assertEqual(await ear.all(changing.server), expected)


class HandshakeTests(ShelfCase):
    """What only clients with a handshake ask."""

    @in_a_loop
    async def test_first(self) -> None:
        """What changed before a subscription is no news, though nobody had been told of it."""
        changing = Changing()
        async with notifier(changing.server, "legacy", [SHIP]) as (_client, ear):
            await changing.server.announce_change()
            self.assertEqual(await ear.all(changing.server), [])

    @in_a_loop
    async def test_names(self) -> None:
        """A document that is named otherwise than it is listed is told by the name that it was subscribed to by."""
        written = ["aileron://actions/ship_update", "aileron://actions/ship%2Dupdate", SHIP]
        changing = Changing()
        async with notifier(changing.server, "legacy", written) as (_client, ear):
            await changing.change(*both()[1:])
            self.assertEqual(await ear.all(changing.server), written)

    @in_a_loop
    async def test_unknown(self) -> None:
        """What is no document of ours is refused as when it is read; to be rid of it is not."""
        async with notifier(Changing().server, "legacy", ()) as (client, _ear):
            for uri in (
                "aileron://actions/gone",
                "aileron://actions/",
                "ship-update",
                "aileron://x",
                "file:///etc/passwd",
            ):
                error = await self.refused(subscribe(client, uri))
                self.assertEqual((error.message, error.data), (f"There is no resource {uri!r}.", {"uri": uri}))
                await unsubscribe(client, uri)

    @in_a_loop
    async def test_unsubscribed(self) -> None:
        """Twice is once; and after one end nothing is heard, of a document that is gone, too."""
        changing = Changing()
        async with notifier(changing.server, "legacy", [SHIP, SHIP]) as (client, ear):
            await changing.change(*both()[1:])
            self.assertEqual(await ear.all(changing.server), [SHIP])
            for _ in range(2):
                await unsubscribe(client, SHIP)
            await changing.change(*both())
            self.assertEqual(await ear.all(changing.server), [])

    @in_a_loop
    async def test_others(self) -> None:
        """Each connection has its own subscriptions, and they end with it."""
        changing = Changing()
        async with (
            notifier(changing.server, "legacy", [POST]) as (_client, ear),
            notifier(changing.server, "legacy", [SHIP]) as (_other_client, other),
        ):
            await changing.change(*both()[1:])
            self.assertEqual(await other.all(changing.server), [SHIP])
            self.assertEqual(await ear.all(changing.server), [])
        async with notifier(changing.server, "legacy", ()) as (_client, ear):
            await changing.change(*both())
            self.assertEqual(await ear.all(changing.server), [])

    @in_a_loop
    async def test_too_many(self) -> None:
        """A connection has so many subscriptions at once, each counted once; one less makes room."""
        names = [f"a-{number:03}" for number in range(MOST_SUBSCRIPTIONS + 1)]
        uris = [f"aileron://actions/{name}" for name in names]
        changing = Changing()
        changing.tools.definitions = read_definitions(
            [action(name, tool_name=name.replace("-", "_")) for name in names]
        )
        async with notifier(changing.server, "legacy", uris[1:-1]) as (client, _ear):
            for _ in range(2):
                await subscribe(client, uris[1])
            with self.assertRaises(MCPError) as caught:
                await subscribe(client, uris[-1])
            self.assertEqual(caught.exception.code, t.INVALID_REQUEST)
            self.assertIn("At most 256", caught.exception.message)
            await unsubscribe(client, uris[1])
            await subscribe(client, uris[-1])

    @in_a_loop
    async def test_too_early(self) -> None:
        """Until the handshake is over there is nobody who could be told."""
        async with notifier(Changing().server, "legacy", ()) as (client, _ear):
            await client.session.send_request(_HELLO, t.InitializeResult)
            with self.assertRaises(MCPError) as caught:
                await subscribe(client, SHIP)
            self.assertEqual(caught.exception.code, t.INVALID_REQUEST)
            self.assertIn("notifications/initialized", caught.exception.message)
            await unsubscribe(client, SHIP)


class ListenTests(ShelfCase):
    """What only clients without a handshake ask."""

    @in_a_loop
    async def test_too_many(self) -> None:
        """One stream is of so many documents at most."""
        server = Changing().server
        for number, allowed in ((MOST_SUBSCRIPTIONS, True), (MOST_SUBSCRIPTIONS + 1, False)):
            uris = [f"{SHIP}{each}" for each in range(number)]
            async with connected(server, "auto") as client:
                try:
                    async with client.listen(resource_subscriptions=uris):
                        self.assertTrue(allowed)
                except MCPError as error:
                    self.assertFalse(allowed)
                    self.assertEqual(error.code, t.INVALID_PARAMS)


class RunsTests(ShelfCase):
    """The session's own runs."""

    @in_both_eras
    async def test_called(self, era: Era) -> None:
        """Who subscribed to them hears of a call, and who did not hears nothing."""
        changing = Changing()
        await changing.server.announce_change()
        async with (
            notifier(changing.server, era, ()) as (client, ear),
            notifier(changing.server, era, (), mark=SHIP) as (_other, deaf),
        ):
            await client.call_tool("ship_update", {})
            self.assertEqual(await ear.one(), RUNS)
            self.assertEqual(await deaf.all(changing.server), [])


_HELLO = t.InitializeRequest(
    params=t.InitializeRequestParams(
        protocol_version="2025-11-25",
        capabilities=t.ClientCapabilities(),
        client_info=t.Implementation(name="test", version="1"),
    )
)
