"""When the session's runs are said to be others, going by its calls."""

from __future__ import annotations

import asyncio

from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._forms import Form
from aileron.mcp._texts import ToolResult, render_form
from aileron.mcp._tools import MOST_SEEN, CallOptions, NotifyingCalls
from tests.mcp.case import in_a_loop
from tests.mcp.test_server import ScriptedTools, done
from tests.mcp.waiting.case import WaitingTools

OPTIONS = CallOptions("K", 45)
SOON_SECONDS, NEVER_SECONDS = 0.001, 3600.0


class NewsCase(SynchronousTestCase):
    """Counts how often it was said."""

    def setUp(self) -> None:
        self.told, self.heard = 0, asyncio.Event()

    async def tell(self) -> None:
        """It was said."""
        self.told += 1
        self.heard.set()

    def calls(self, tools: ScriptedTools, begun_seconds: float = NEVER_SECONDS) -> NotifyingCalls:
        """Those tools, heard."""
        return NotifyingCalls(tools, self.tell, begun_seconds)


class CallTests(NewsCase):
    """Calls of tools."""

    @in_a_loop
    async def test_answered(self) -> None:
        """A call of an action, by its own tool or another, is news once it is answered; of our tools none is.

        Nor is one that lacks what a person is to say, which has begun nothing.
        """
        lacking = render_form(Form("?", {"a": {"type": "string"}}, ("a",)))
        for tool, expected, news in (
            ("ship_update", await done(), 1),
            ("ship_update", lacking, 0),
            ("run_action", await done(), 1),
            ("search_actions", await done(), 0),
            ("describe_action", await done(), 0),
            ("aileron_diagnostics", await done(), 0),
        ):

            async def answer(expected: ToolResult = expected) -> ToolResult:
                return expected

            tools, before = ScriptedTools(answer), self.told
            result = await self.calls(tools, SOON_SECONDS).call(tool, {"text": "x"}, OPTIONS)
            await asyncio.sleep(SOON_SECONDS * 5)  # when one that goes on would be news
            self.assertEqual((result, self.told - before), (expected, news), tool)
            self.assertEqual((tools.called, tools.keys), ([(tool, {"text": "x"})], ["K"]))

    @in_a_loop
    async def test_long(self) -> None:
        """One that is not answered soon is news while it goes on, once, and once more when it is answered."""

        async def slow() -> ToolResult:
            await self.heard.wait()
            return ToolResult("", is_error=True)

        await self.calls(ScriptedTools(slow), SOON_SECONDS).call("ship_update", {}, OPTIONS)
        self.assertEqual(self.told, 2)

    @in_a_loop
    async def test_cut_off(self) -> None:
        """One that is cut off, or fails by a fault of ours, is news too, and then it is over."""
        began = asyncio.Event()

        async def endless() -> ToolResult:
            began.set()
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        async def broken() -> ToolResult:
            raise RuntimeError

        calling = asyncio.ensure_future(self.calls(ScriptedTools(endless)).call("ship_update", {}, OPTIONS))
        await began.wait()
        calling.cancel()
        await asyncio.wait([calling])
        self.assertEqual((calling.cancelled(), self.told), (True, 1))
        with self.assertRaises(RuntimeError):
            await self.calls(ScriptedTools(broken)).call("ship_update", {}, OPTIONS)
        self.assertEqual(self.told, 2)

    @in_a_loop
    async def test_withdrawn(self) -> None:
        """What is taken back is news, by its call or by its run."""
        tools = WaitingTools()
        await self.calls(tools).withdraw("K")
        self.assertEqual((tools.withdrawn, self.told), (["K"], 1))
        await self.calls(tools).withdraw_run("R")
        self.assertEqual((tools.withdrawn, self.told), (["K", "R"], 2))


class AskTests(NewsCase):
    """Questions how a run stands."""

    @in_a_loop
    async def test_status(self) -> None:
        """What the status tool says is news where it said something else before; an error is none."""
        answers = [
            ToolResult("pending"),
            ToolResult("pending"),
            ToolResult("No daemon.", is_error=True),
            ToolResult("pending"),
            ToolResult("done"),
        ]
        script = iter(answers)

        async def answer() -> ToolResult:
            return next(script)

        calls = self.calls(ScriptedTools(answer))
        seen = []
        for result in answers:
            self.assertEqual(await calls.call("check_action_status", {"approval_id": "R"}, OPTIONS), result)
            seen.append(self.told)
        self.assertEqual(seen, [1, 1, 1, 1, 2])

    @in_a_loop
    async def test_task(self) -> None:
        """How a task's run stands is news when it changes, for each run."""
        tools = WaitingTools()
        calls = self.calls(tools)
        for run_id, status, told in (
            ("R", "pending_approval", 1),
            ("S", "pending_approval", 2),
            ("R", "pending_approval", 2),
            ("R", "completed", 3),
            ("S", "pending_approval", 3),
        ):
            tools.run = {"id": run_id, "status": status}
            self.assertEqual(await calls.run_status(run_id), tools.run)
            self.assertEqual(self.told, told)

    @in_a_loop
    async def test_forgotten(self) -> None:
        """Of more runs than so many the first is forgotten, and is news again."""
        calls = self.calls(WaitingTools())
        for number in range(MOST_SEEN):
            await calls.run_status(str(number))
        await calls.run_status("0")
        self.assertEqual(self.told, MOST_SEEN)
        await calls.run_status("another")
        await calls.run_status("0")
        self.assertEqual(self.told, MOST_SEEN + 2)
