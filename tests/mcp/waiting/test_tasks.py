"""The tasks extension: the run is the task."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import mcp.types as t
from attrs import evolve
from mcp import Client, MCPError
from mcp.client.extension import ClientExtension, ResultClaim

from aileron.client import DaemonFault, DaemonUnreachable
from aileron.mcp._opening import TASKS
from aileron.mcp._texts import Pending, ToolResult
from aileron.mcp._tools import NotifyingCalls
from aileron.mcp.waiting.tasks import MOST_TO_SHOW, McpTasks, UpdateTaskParams
from aileron.model.faults import Fault
from tests.mcp.case import in_a_loop, text_of
from tests.mcp.waiting.case import ATTENDED, FACTS, URL, Person, WaitingCase, WaitingTools, connected
from tests.mcp.waiting.test_reviews import STANDS

NOBODY = evolve(ATTENDED, attended=False)


class Created(t.Result):
    """A call's answer that is a task."""

    result_type: Literal["task"] = "task"
    task_id: str = ""
    status: str = ""
    status_message: str = ""
    poll_interval_ms: int = 0


class Got(t.Result):
    """How a task stands."""

    task_id: str = ""
    status: str = ""
    result: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None


class GetTask(t.Request[t.GetTaskRequestParams, Literal["tasks/get"]]):
    """tasks/get."""

    method: Literal["tasks/get"] = "tasks/get"
    params: t.GetTaskRequestParams


class UpdateTask(t.Request[UpdateTaskParams, Literal["tasks/update"]]):
    """tasks/update."""

    method: Literal["tasks/update"] = "tasks/update"
    params: UpdateTaskParams


class CancelTask(t.Request[t.CancelTaskRequestParams, Literal["tasks/cancel"]]):
    """tasks/cancel."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: t.CancelTaskRequestParams


class TasksExtension(ClientExtension):
    """A client that knows tasks."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Answers that are tasks."""
        return (ResultClaim(model=Created, result_type="task", resolve=self._resolve),)

    async def _resolve(self, result: Created, *_: object) -> t.CallToolResult:
        return t.CallToolResult(content=[t.TextContent(text=f"task {result.task_id} {result.status}")])


CANCEL = CancelTask(params=t.CancelTaskRequestParams(task_id="R"))


async def send(client: Client, request: Any) -> None:
    """Send a request that nothing is answered to."""
    await client.session.send_request(request, t.EmptyResult)


async def get(client: Client) -> Got:
    """Ask for the task."""
    request: Any = GetTask(params=t.GetTaskRequestParams(task_id="R"))
    return await client.session.send_request(request, Got)


def able() -> dict[str, Any]:
    """The options of a client that knows tasks, and can open pages."""
    return {"extensions": [TasksExtension()], "elicitation_callback": Person().elicited}


class TaskTests(WaitingCase):
    """A client that declared the extension."""

    @in_a_loop
    async def test_a_call_becomes_a_task(self) -> None:
        """A call that waits for a person answers at once with a task that has the run's id, and asks nothing."""
        tools = WaitingTools()
        async with connected(tools, "auto", NOBODY, **able()) as client:
            result = await client.call_tool("ship_update", {})
            self.assertEqual(text_of(result), "task R working")
            got = await get(client)
            self.assertEqual((got.task_id, got.status, got.result, got.input_requests), ("R", "working", None, None))

    @in_a_loop
    async def test_review_page(self) -> None:
        """Where a person sits before the client, the task asks to open the review page, until that was answered."""
        tools = WaitingTools()
        async with connected(tools, "auto", **able()) as client:
            await client.call_tool("ship_update", {})
            for _ in range(2):
                got = await get(client)
                assert got.input_requests is not None
                self.assertEqual((got.status, list(got.input_requests)), ("input_required", ["review"]))
                params = got.input_requests["review"]["params"]
                self.assertEqual((params["url"], params["message"]), (URL, STANDS))
            await send(client, UpdateTask(params=UpdateTaskParams(task_id="R")))
            self.assertEqual((await get(client)).status, "working")

    @in_a_loop
    async def test_decided_before_it_was_shown(self) -> None:
        """A page with nothing to decide is shown to nobody, not even if the run waits again."""
        tools = WaitingTools()
        async with connected(tools, "auto", **able()) as client:
            await client.call_tool("ship_update", {})
            for status, stands in [("running", "working"), ("pending_approval", "working")]:
                tools.run = {**FACTS, "status": status}
                self.assertEqual((await get(client)).status, stands)

    @in_a_loop
    async def test_shown_is_bounded(self) -> None:
        """Pages that no client asks about are forgotten, the oldest first."""
        tools = WaitingTools()
        tasks = McpTasks(NotifyingCalls(tools, lambda: asyncio.sleep(0)))
        for number in range(MOST_TO_SHOW + 1):
            await tasks.begin(Pending(f"R{number}", "Ship", URL), shown=True)
        asked = [bool(tasks.question({"id": f"R{n}", "status": "pending_approval"})) for n in (0, 1, MOST_TO_SHOW)]
        self.assertEqual(asked, [False, True, True])

    def outcome(self, **run: Any) -> Got:
        """How the task stands whose run stands so."""

        async def talk() -> Got:
            tools = WaitingTools()
            tools.run = {**FACTS, **run}
            async with connected(tools, "auto", NOBODY, extensions=[TasksExtension()]) as client:
                return await get(client)

        return asyncio.run(talk())

    def test_result(self) -> None:
        """A task that is over has the result that the call would have had: text, and data where that is declared."""
        done = {"status": "completed", "audit_id": "A", "result": {"output": {"ts": "1"}}, "edited": []}
        for name, data in (("declared", {"status": "completed", "output": {"ts": "1"}}), ("gone", None)):
            got = self.outcome(action=name, **done)
            assert got.result is not None
            self.assertEqual((got.status, got.result["isError"]), ("completed", False))
            self.assertEqual(got.result.get("structuredContent"), data)
            self.assertEqual(got.result["content"][0]["text"], '{"ts":"1"}')

    def test_status(self) -> None:
        """Whatever waits or runs is working, what was withdrawn cancelled, and what came to nothing says so."""
        for status in ("pending_approval", "awaiting_vault", "awaiting_credential", "running"):
            self.assertEqual(self.outcome(status=status).status, "working")
        self.assertEqual(self.outcome(status="cancelled").status, "cancelled")
        for status in ("denied", "expired", "failed", "unknown"):
            got = self.outcome(status=status, reason=None, failure=None)
            assert got.result is not None
            self.assertTrue(got.result["isError"])
            self.assertIn(f"status: {status}", got.result["content"][0]["text"])

    @in_a_loop
    async def test_cancelled(self) -> None:
        """To cancel a task is a wish, handed on as a call's cancellation is."""
        tools = WaitingTools()
        async with connected(tools, "auto", NOBODY, extensions=[TasksExtension()]) as client:
            await send(client, CANCEL)
        self.assertEqual(tools.withdrawn, ["R"])

    @in_a_loop
    async def test_cancelled_too_late(self) -> None:
        """A task that was decided meanwhile is not taken back, and that is no error; without the daemon it is one."""
        tools = WaitingTools()
        tools.refusal = DaemonFault("Too late.", 409, Fault("conflict", "Too late."), None, None)
        async with connected(tools, "auto", NOBODY, extensions=[TasksExtension()]) as client:
            await send(client, CANCEL)
            tools.refusal = DaemonUnreachable("Gone.")
            with self.assertRaises(MCPError):
                await send(client, CANCEL)

    @in_a_loop
    async def test_errors(self) -> None:
        """Another's task is none; without the daemon the task goes on; who did not declare tasks has none."""
        missing = DaemonFault("No.", 404, Fault("not_found", "No."), None, None)
        for error, code in [(missing, t.INVALID_PARAMS), (DaemonUnreachable("Gone."), t.INTERNAL_ERROR)]:
            tools = WaitingTools()
            tools.run = error
            async with connected(tools, "auto", NOBODY, extensions=[TasksExtension()]) as client:
                with self.assertRaises(MCPError) as caught:
                    await get(client)
                self.assertEqual(caught.exception.error.code, code)
        async with connected(WaitingTools(), "auto", NOBODY) as client:
            with self.assertRaises(MCPError) as caught:
                await get(client)
            self.assertEqual(caught.exception.error.code, -32021)

    @in_a_loop
    async def test_no_task_just_now(self) -> None:
        """A call that waits when the daemon goes away, before the task is made, is told as waiting, not as failed."""
        tools = WaitingTools()
        tools.run = DaemonUnreachable("Gone.")
        async with connected(tools, "auto", NOBODY, extensions=[TasksExtension()]) as client:
            result = await client.call_tool("ship_update", {})
            self.assertEqual((text_of(result), result.is_error), ("It waits.", False))

    @in_a_loop
    async def test_not_declared(self) -> None:
        """Who declared nothing gets the result itself."""
        tools = WaitingTools()
        tools.decide(ToolResult("ok"))
        async with connected(tools, "auto", NOBODY) as client:
            self.assertEqual(text_of(await client.call_tool("ship_update", {})), "ok")
