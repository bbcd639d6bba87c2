"""``/mcp`` of an installed daemon: the same tools for whoever speaks HTTP, behind the same guard."""

import asyncio
import os
from functools import partial
from itertools import product
from typing import Any

import mcp.types as t
from mcp import Client, StdioServerParameters
from twisted.internet.defer import Deferred

from tests.extent import is_all
from tests.functional.mcp_http import ERAS, Era, McpByHand, McpHttpTestCase, connected, message_of, talk
from tests.functional.operated import SHIP
from tests.functional.tree import descendants

_MODERN = "2026-07-28"


class ServingTests(McpHttpTestCase):
    """With the SDK's own client."""

    async def test_both_eras(self) -> None:
        """By HTTP and on standard streams it lists the tools and calls one; what was done is on record."""
        session = await self.furnish_with_mcp()
        ours = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        program, *arguments = self.forked("aileron-mcp")
        environment = self.home.environment(**ours)
        server = StdioServerParameters(command=program, args=arguments, env=environment, cwd=str(self.home.project))

        async def conversation(by_http: bool, era: Era) -> tuple[list[str], t.CallToolResult]:
            connecting = connected(self.mcp_url, session.token, era) if by_http else Client(server, mode=era)
            async with connecting as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                return tools, await client.call_tool("post_note", SHIP)

        ways = [way for way in product((True, False), ERAS) if is_all() or way != (False, "legacy")]
        for count, (by_http, era) in enumerate(ways, 1):
            tools, result = await talk(self.reactor, partial(conversation, by_http, era))
            self.assertLessEqual({"ship_update", "post_note", "check_action_status"}, set(tools))
            self.assertFalse(result.is_error, result)
            await self.posted(count)
        done = [record for record in await self.audit() if record["type"] == "execution.succeeded"]
        self.assertEqual([record["session_id"] for record in done], [session.id] * len(ways))
        self.assertNotIn("aileron-mcp", [each.program for each in descendants(os.getpid())])

    async def test_approved_meanwhile(self) -> None:
        """A call that needs approval waits for it, and ends with its result."""
        session = await self.furnish_with_mcp()

        async def conversation(era: Era) -> t.CallToolResult:
            async with connected(self.mcp_url, session.token, era) as client:
                return await client.call_tool("ship_update", SHIP)

        for count, era in enumerate(ERAS, 1):
            calling = Deferred.fromCoroutine(talk(self.reactor, partial(conversation, era)))
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


class GuardTests(McpHttpTestCase):
    """Who is let in, how often, and until when."""

    async def test_off(self) -> None:
        """Where it was not asked for there is nothing, and nothing was loaded for it."""
        self.executes_daemons = True
        await self.furnish()
        session = await self.session()
        self.assertEqual((await self.by_hand(session.token).shake_hands()).status, 404)
        pid = self.home.discovery()["pid"]
        with open(f"/proc/{pid}/maps") as mapped:
            self.assertNotIn("pydantic_core", mapped.read())

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
