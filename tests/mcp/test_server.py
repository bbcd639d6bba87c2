"""The MCP server, as the SDK's own client sees it in both eras of the protocol."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp.types as t
from mcp import Client
from mcp.server.subscriptions import ResourcesListChanged, ToolsListChanged
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonUnreachable
from aileron.mcp._definitions import ToolDefinition, own_definitions, read_definitions
from aileron.mcp._server import ToolServer
from aileron.mcp._texts import ToolResult
from aileron.mcp._tools import CallOptions
from aileron.mcp.waiting.calling import ClientPolicy
from tests.mcp.case import Era, action, in_a_loop, in_both_eras, text_of


class ScriptedTools:
    """Tools that answer as a test says.

    :ivar called: every call so far.
    :ivar keys: the idempotency key of each.
    :ivar tool_calls: the id of the model's tool call of each.
    :ivar parents: the client's place in its trace of each, as a header.
    """

    def __init__(self, answer: Callable[[], Awaitable[ToolResult]]) -> None:
        self.called: list[tuple[str, Mapping[str, Any]]] = []
        self.keys: list[str] = []
        self.tool_calls: list[str | None] = []
        self.parents: list[str | None] = []
        self._answer = answer

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """One action, and our own."""
        return (*read_definitions([action()]), *own_definitions(45))

    async def actions(self) -> tuple[ToolDefinition, ...]:
        """One."""
        return read_definitions([action()])

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """None."""
        return []

    async def call(self, tool: str, arguments: Mapping[str, Any], options: CallOptions) -> ToolResult:
        """Note it, and answer."""
        self.called.append((tool, arguments))
        self.keys.append(options.key)
        self.tool_calls.append(options.tool_call)
        self.parents.append(None if options.parent is None else options.parent.header)
        return await self._answer()

    async def withdraw(self, key: str) -> None:
        """Nothing can be taken back."""

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """There is no run."""
        raise DaemonUnreachable("No daemon.")

    async def withdraw_run(self, run_id: str) -> None:
        """Nothing can be taken back."""


async def done() -> ToolResult:
    """A call that is done."""
    return ToolResult('{"ts":"1"}')


def serving(answer: Callable[[], Awaitable[ToolResult]] = done) -> ToolServer:
    """A server over tools that answer so, whose heart beats fast."""
    return ToolServer(ScriptedTools(answer), ClientPolicy(beats=lambda: itertools.repeat(0.02)))


@asynccontextmanager
async def connected(server: ToolServer, era: Era, **options: Any) -> AsyncIterator[Client]:
    """A client of that era."""
    async with Client(server.server, mode=era, **options) as client:
        yield client


class PromiseTests(SynchronousTestCase):
    """What it says of itself."""

    @in_both_eras
    async def test_capabilities(self, era: Era) -> None:
        """A client of either era may subscribe to documents, hears of lists that change, and has names completed."""
        async with connected(serving(), era) as client:
            promised = client.server_capabilities
        assert promised is not None and promised.resources is not None and promised.tools is not None
        self.assertEqual((promised.resources.subscribe, promised.resources.list_changed), (True, True))
        self.assertTrue(promised.tools.list_changed)
        self.assertIsNotNone(promised.completions)


class ListTests(SynchronousTestCase):
    """The list of tools."""

    @in_both_eras
    async def test_tools(self, era: Era) -> None:
        """Every tool is offered with its schema and annotations."""
        async with connected(serving(), era) as client:
            found = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertEqual(list(found), ["ship_update", "aileron_diagnostics", "check_action_status"])
        ship, status = found["ship_update"], found["check_action_status"]
        self.assertEqual(ship.title, "Ship update")
        self.assertEqual(ship.input_schema["properties"], {"text": {"type": "string"}})
        self.assertEqual((_hints(ship), ship.output_schema), ((False, True, False, True), None))
        self.assertEqual(_hints(status), (True, False, True, False))

    @in_a_loop
    async def test_change_after_a_handshake(self) -> None:
        """A change of the lists reaches a client of the older era as notifications."""
        heard = asyncio.Event()
        kinds: set[type] = set()

        async def hear(message: object) -> None:
            kinds.add(type(message))
            if {t.ToolListChangedNotification, t.ResourceListChangedNotification} <= kinds:
                heard.set()

        server = serving()
        async with connected(server, "legacy", message_handler=hear) as client:
            await client.list_tools()
            await server.announce_change()
            await heard.wait()

    @in_a_loop
    async def test_change_for_a_listener(self) -> None:
        """A change of the lists reaches a client of the newer era that listens."""
        server = serving()
        async with (
            connected(server, "auto") as client,
            client.listen(tools_list_changed=True, resources_list_changed=True) as events,
        ):
            await server.announce_change()
            heard = [type(await anext(aiter(events))) for _ in range(2)]
            self.assertEqual(heard, [ToolsListChanged, ResourcesListChanged])


class ResultTests(SynchronousTestCase):
    """What a call brings."""

    @in_both_eras
    async def test_text(self, era: Era) -> None:
        """A result is text, and only text; two calls with the same arguments are two runs."""
        tools = ScriptedTools(done)
        async with connected(ToolServer(tools), era) as client:
            for _ in range(2):
                result = await client.call_tool("ship_update", {"text": "hi"})
        self.assertEqual((text_of(result), bool(result.is_error)), ('{"ts":"1"}', False))
        self.assertIsNone(result.structured_content)
        self.assertEqual(tools.called, [("ship_update", {"text": "hi"})] * 2)
        self.assertEqual(len(set(tools.keys)), 2)

    @in_both_eras
    async def test_tool_call(self, era: Era) -> None:
        """The id of the model's tool call is read where Claude Code sends it; what is no such id is passed over."""
        tools = ScriptedTools(done)
        async with connected(ToolServer(tools), era) as client:
            for told in ("toolu_1", "x" * 200, "", "a b", "\u00e9", "a\n", 7, None, ["toolu_1"]):
                meta: Any = {"claudecode/toolUseId": told}
                await client.call_tool("ship_update", {}, meta=meta)
            await client.call_tool("ship_update", {})
        self.assertEqual(tools.tool_calls, ["toolu_1", "x" * 128, *[None] * 8])

    @in_both_eras
    async def test_traceparent(self, era: Era) -> None:
        """The client's place in its trace is read from C{_meta}; what is no valid one is passed over."""
        tools = ScriptedTools(done)
        valid = f"00-{'1' * 32}-{'2' * 16}-01"
        async with connected(ToolServer(tools), era) as client:
            for told in (
                valid,
                f"{valid}-x",
                valid.upper()[:-2] + "0g",
                f"00-{'0' * 32}-{'2' * 16}-01",
                "\u00e9",
                7,
                [valid],
            ):
                meta: Any = {"traceparent": told, "tracestate": "vendor=canary"}
                self.assertFalse((await client.call_tool("ship_update", {}, meta=meta)).is_error)
        self.assertEqual(tools.parents, [valid, *[None] * 6])

    @in_both_eras
    async def test_fault_of_ours(self, era: Era) -> None:
        """A fault of our own is a result that shows nothing of the inside."""

        async def broken() -> ToolResult:
            raise RuntimeError("hunter2")

        with self.assertLogs("aileron.mcp._server"):
            async with connected(serving(broken), era) as client:
                result = await client.call_tool("ship_update", {})
        self.assertTrue(result.is_error)
        self.assertNotIn("hunter2", text_of(result))


class WaitTests(SynchronousTestCase):
    """While a call waits."""

    @in_both_eras
    async def test_progress(self, era: Era) -> None:
        """A client that asked for it hears that the call is under way."""
        heard: list[float] = []
        enough = asyncio.Event()

        async def slow() -> ToolResult:
            await enough.wait()
            return ToolResult("ok")

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(progress)
            if len(heard) == 3:
                enough.set()

        async with connected(serving(slow), era) as client:
            result = await client.call_tool("ship_update", {}, progress_callback=hear)
        self.assertEqual((text_of(result), heard[:3]), ("ok", [1, 2, 3]))

    @in_both_eras
    async def test_parallel(self, era: Era) -> None:
        """Two calls wait at the same time."""
        both = asyncio.Barrier(2)

        async def together() -> ToolResult:
            await both.wait()
            return ToolResult("ok")

        async with connected(serving(together), era) as client:
            calls = [client.call_tool("ship_update", {}) for _ in range(2)]
            self.assertEqual([text_of(result) for result in await asyncio.gather(*calls)], ["ok", "ok"])


def _hints(tool: t.Tool) -> tuple[bool | None, bool | None, bool | None, bool | None]:
    hints = tool.annotations
    assert hints is not None
    return hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint
