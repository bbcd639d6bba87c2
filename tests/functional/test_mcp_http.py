"""``/mcp`` of an installed daemon: the same tools for whoever speaks HTTP, behind the same guard."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import mcp.types as t
from mcp import Client, StdioServerParameters
from mcp.server.subscriptions import ResourceUpdated
from twisted.internet.defer import Deferred

from tests.functional.mcp_http import ERAS, Era, McpByHand, McpHttpTestCase, connected, message_of, talk
from tests.functional.operated import GATED, SHIP, UNGATED
from tests.functional.tree import descendants

RUNS, ACTIONS = "aileron://runs", "aileron://actions/"
_MODERN = "2026-07-28"


class ServingTests(McpHttpTestCase):
    """With the SDK's own client."""

    async def test_both_eras(self) -> None:
        """It lists the tools, and calls one; what was done is in the service and on record."""
        session = await self.furnish_with_mcp()

        async def conversation(era: Era) -> tuple[list[str], t.CallToolResult]:
            async with connected(self.mcp_url, session.token, era) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                return tools, await client.call_tool("post_note", SHIP)

        for count, era in enumerate(ERAS, 1):
            tools, result = await talk(self.reactor, lambda era=era: conversation(era))  # type: ignore[misc]
            self.assertLessEqual({"ship_update", "post_note", "check_action_status"}, set(tools))
            self.assertFalse(result.is_error, result)
            await self.posted(count)
        done = [record for record in await self.audit() if record["type"] == "execution.succeeded"]
        self.assertEqual([record["session_id"] for record in done], [session.id] * 2)

    async def test_few_listed(self) -> None:
        """It lists no more actions than the configuration says, and documents all."""
        session = await self.furnish_with_mcp("  listed_actions: 1\n")
        await self.run_action(session, "post-note")

        async def conversation(era: Era) -> tuple[list[str], list[str]]:
            async with connected(self.mcp_url, session.token, era) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                return tools, [resource.name for resource in (await client.list_resources()).resources]

        for era in ERAS:
            tools, documents = await talk(self.reactor, lambda era=era: conversation(era))  # type: ignore[misc]
            self.assertEqual((tools[0], "ship_update" in tools, "search_actions" in tools), ("post_note", False, True))
            self.assertEqual(documents, ["runs", "post-note", "ship-update"])

    async def test_standard_streams(self) -> None:
        """The same client finds the same on standard streams, in both eras, and leaves no process."""
        await self.furnish()
        session = await self.session()
        ours = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        command = self.home.script("aileron-mcp")
        server = StdioServerParameters(
            command=command.arguments[0], env={**command.environment, **ours}, cwd=str(self.home.project)
        )

        async def conversation(era: Era) -> tuple[list[str], t.CallToolResult]:
            async with Client(server, mode=era) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                return tools, await client.call_tool("post_note", SHIP)

        for count, era in enumerate(ERAS, 1):
            tools, result = await talk(self.reactor, lambda era=era: conversation(era))  # type: ignore[misc]
            self.assertLessEqual({"ship_update", "post_note", "check_action_status"}, set(tools))
            self.assertFalse(result.is_error, result)
            await self.posted(count)
        self.assertNotIn("aileron-mcp", [each.program for each in descendants(os.getpid())])

    async def test_approved_meanwhile(self) -> None:
        """A call that needs approval waits for it, and ends with its result."""
        session = await self.furnish_with_mcp()

        async def conversation(era: Era) -> t.CallToolResult:
            async with connected(self.mcp_url, session.token, era) as client:
                return await client.call_tool("ship_update", SHIP)

        for count, era in enumerate(ERAS, 1):
            calling = Deferred.fromCoroutine(talk(self.reactor, lambda era=era: conversation(era)))  # type: ignore[misc]
            [approval] = await self.waiting()
            self.assertEqual(len(self.workspace.messages), count - 1)
            await self.approve(approval["id"])
            self.assertFalse((await calling).is_error)
            await self.posted(count)

    async def test_list_changes(self) -> None:
        """A client of either era that listens hears that the list is another."""
        session = await self.furnish_with_mcp()
        listening: list[asyncio.Event] = []

        async def older() -> str:
            heard = asyncio.Event()

            async def hear(message: object) -> None:
                if isinstance(message, t.ToolListChangedNotification):
                    heard.set()

            async with connected(self.mcp_url, session.token, "legacy", message_handler=hear) as client:
                await client.list_tools()
                await asyncio.sleep(0.5)  # nothing tells that the stream of what comes unasked is open
                listening.append(heard)
                await heard.wait()
            return "older"

        async def newer() -> str:
            async with (
                connected(self.mcp_url, session.token, "auto") as client,
                client.listen(tools_list_changed=True) as events,
            ):
                listening.append(asyncio.Event())
                await anext(aiter(events))
            return "newer"

        for count, conversation in enumerate((older, newer)):
            hearing = Deferred.fromCoroutine(talk(self.reactor, conversation))
            while len(listening) <= count:
                await self.pause(0.1)
            await self.add(self.action_file(f"another-{count}", gated=False))
            self.assertEqual(await hearing, conversation.__name__)

    async def test_subscribed(self) -> None:
        """A client of either era hears of a call, and of an action's file that changes, where it subscribed to that."""
        session = await self.furnish_with_mcp()
        # The one is done at once; the other waits for a person, and is news all the same.
        for conversation, action in ((_older, UNGATED), (_newer, GATED)):
            ear = _Ear(self.mcp_url, session.token, action)
            talking = Deferred.fromCoroutine(
                talk(self.reactor, lambda conversation=conversation, ear=ear: conversation(ear))  # type: ignore[misc]
            )
            while RUNS not in ear.heard:
                await self.pause(0.1)
            path = self.state.actions / f"{action}.md"
            path.write_bytes(path.read_bytes() + b"\nMore.\n")
            await talking
            self.assertEqual(ear.heard, set(ear.wanted))

    async def test_completed(self) -> None:
        """The name of an action is completed, and its document attached to the prompt that uses it."""
        session = await self.furnish_with_mcp()
        prompt = t.PromptReference(name="use_action")

        async def conversation(era: Era) -> tuple[list[str], list[str]]:
            async with connected(self.mcp_url, session.token, era) as client:
                found = await client.complete(prompt, {"name": "action", "value": "note"})
                messages = (await client.get_prompt("use_action", {"action": UNGATED})).messages
                return found.completion.values, [message.content.type for message in messages]

        for era in ERAS:
            told = await talk(self.reactor, lambda era=era: conversation(era))  # type: ignore[misc]
            self.assertEqual(told, ([UNGATED], ["resource", "text"]))


class GuardTests(McpHttpTestCase):
    """Who is let in, how often, and until when."""

    async def test_off(self) -> None:
        """Where it was not asked for there is nothing, and nothing was loaded for it."""
        await self.furnish()
        session = await self.session()
        self.assertEqual((await self.by_hand(session.token).shake_hands()).status, 404)
        pid = self.home.discovery()["pid"]
        with open(f"/proc/{pid}/maps") as mapped:
            self.assertNotIn("pydantic_core", mapped.read())

    async def test_strangers(self) -> None:
        """Without the token of a live session, from another origin, or in another's session nobody is served."""
        mine, other = await self.furnish_with_mcp(), await self.session()
        launch_key = self.home.discovery()["launch_key"]
        for token, status in ((None, 401), ("ail_a_x", 401), (mine.gateway_key, 401), (launch_key, 403)):
            refused = await self.by_hand(token).shake_hands()
            self.assertEqual((refused.status, "error" in refused.body), (status, True), token)
        self.assertEqual((await self.by_hand(mine.token).post("ping", Origin="http://evil.test")).status, 403)
        self.assertEqual((await self.by_hand(mine.token).post("ping", Host="evil.test")).status, 400)
        session_id = await self.by_hand(mine.token).opened()
        self.assertEqual((await self.by_hand(mine.token).post("ping", session_id=session_id)).status, 200)
        for ask in (self.by_hand(other.token).listen, self.by_hand(other.token).delete):
            self.assertEqual((await ask(session_id)).status, 404)
        self.assertEqual((await self.by_hand(other.token).post("ping", session_id=session_id)).status, 404)
        self.assertEqual((await self.by_hand(mine.token).post("ping", session_id=session_id)).status, 200)

    async def test_bounds(self) -> None:
        """One agent has so many sessions at once; one that it deletes, or leaves idle, makes room and is no more."""
        session = await self.furnish_with_mcp("  sessions: 2\n  idle_seconds: 10\n")
        mine = self.by_hand(session.token)
        first, second = await mine.opened(), await mine.opened()
        self.assertEqual((await mine.shake_hands()).status, 503)
        self.assertEqual((await self.by_hand((await self.session()).token).shake_hands()).status, 200)
        self.assertEqual((await mine.delete(first)).status, 200)
        self.assertEqual((await mine.post("ping", session_id=first)).status, 404)
        await mine.opened()
        await self.pause(12)
        self.assertEqual((await mine.post("ping", session_id=second)).status, 404)
        self.assertEqual(message_of(await mine.shake_hands())["result"]["protocolVersion"], "2025-11-25")

    async def test_ended(self) -> None:
        """What an agent has open ends with its session, at once, and another's does not; a stop ends all of it."""
        mine, other = await self.furnish_with_mcp(), await self.session()
        open_: list[Deferred[Any]] = []
        for session in (mine, other):
            hand = self.by_hand(session.token)
            open_.append(Deferred.fromCoroutine(hand.listen(await hand.opened())))
            open_.append(Deferred.fromCoroutine(self._call_modern(hand)))
        await self.waiting(2)
        url = f"{self.home.discovery()['url']}/v1/sessions/{mine.id}/end"
        await self.web.ask("POST", url, mine.token, {})
        self.assertEqual((await open_[0].addTimeout(5, self.reactor)).status, 200)
        cut = await open_[1].addTimeout(5, self.reactor)  # with its server, or told by the agent site just before
        self.assertTrue(cut.status == 500 or message_of(cut)["result"]["isError"], cut)
        self.assertEqual((await self.by_hand(mine.token).shake_hands()).status, 401)
        await self.pause(0.5)
        self.assertEqual([each.called for each in open_[2:]], [False, False])
        stopped_at = self.reactor.seconds()
        stopping = Deferred.fromCoroutine(self.command("daemon", "stop"))
        for each in open_[2:]:
            each.addErrback(lambda _: None)  # whatever it says: it is over
            await each.addTimeout(10, self.reactor)
        await stopping
        self.assertLess(self.reactor.seconds() - stopped_at, 15)

    async def _call_modern(self, hand: McpByHand) -> Any:
        """A call of the stateless era that waits for an approval."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": _MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": "ship_update", "arguments": dict(SHIP), "_meta": meta}
        headers = {"Mcp_Protocol_Version": _MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "ship_update"}
        return await hand.post("tools/call", params, **headers)


class _Ear:
    """What a client heard of an action's document and of the session's runs."""

    def __init__(self, url: str, token: str, action: str) -> None:
        self.url, self.token = url, token
        self.wanted = (RUNS, f"{ACTIONS}{action}")
        self.heard: set[str] = set()
        self._tool = action.replace("-", "_")

    async def hear(self, message: object) -> None:
        """What a client with a handshake is told."""
        if isinstance(message, t.ResourceUpdatedNotification):
            self.heard.add(message.params.uri)

    async def call(self, client: Client) -> None:
        """Call the action, until all was heard."""
        calling = asyncio.ensure_future(client.call_tool(self._tool, SHIP))
        while self.heard != set(self.wanted):
            await asyncio.sleep(0.05)
        calling.cancel()
        await asyncio.wait([calling])


async def _older(ear: _Ear) -> None:
    """Subscribe with a handshake, and call."""
    async with connected(ear.url, ear.token, "legacy", message_handler=ear.hear) as client:
        for uri in ear.wanted:
            asked = t.SubscribeRequest(params=t.SubscribeRequestParams(uri=uri))
            await client.session.send_request(asked, t.EmptyResult)
        await asyncio.sleep(0.5)  # nothing tells that the stream of what comes unasked is open
        await ear.call(client)


async def _newer(ear: _Ear) -> None:
    """Listen without one, and call."""
    async with (
        connected(ear.url, ear.token, "auto") as client,
        client.listen(resource_subscriptions=ear.wanted) as events,
    ):
        listening = asyncio.ensure_future(_listen(events, ear))
        await ear.call(client)
        listening.cancel()


async def _listen(events: AsyncIterator[object], ear: _Ear) -> None:
    async for event in events:
        assert isinstance(event, ResourceUpdated)
        ear.heard.add(event.uri)
