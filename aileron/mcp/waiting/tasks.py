"""The extension C{io.modelcontextprotocol/tasks}: a pending call is returned as a task.

A task is a run and has the run's ID, so it outlives this process, a restart of the daemon and the agent itself.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import mcp.types as t
from mcp import MCPError
from mcp.server.lowlevel import Server

from aileron.base.json import plain
from aileron.client import DaemonAnswer, DaemonError, DaemonFault
from aileron.mcp._contents import add_structured_data, attachment_blocks
from aileron.mcp._definitions import ToolDefinition
from aileron.mcp._notifier import Context
from aileron.mcp._opening import TASKS
from aileron.mcp._texts import Pending, ToolResult, render_run, render_status
from aileron.mcp._tools import NotifyingCalls

from .elicitation import REVIEW, review_request

MISSING_CAPABILITY = -32021
POLL_MILLISECONDS = 2000
KEPT_MILLISECONDS = 7 * 86_400_000
MOST_TO_SHOW = 64

_WAITING = {
    "pending_approval": "Waits for the user's approval.",
    "awaiting_vault": "Approved; waits until the user unlocks the vault.",
    "awaiting_credential": "Approved; waits until the user renews the credential that it needs.",
}


_log = logging.getLogger(__name__)


class UpdateTaskParams(t.RequestParams):
    """A client's answer to a task's question. The content of the answer is ignored."""

    task_id: str


class McpTasks:
    """Handles MCP requests about tasks. A task is a run whose call returned before the run had ended."""

    def __init__(self, calls: NotifyingCalls) -> None:
        self._calls = calls
        self._to_show: OrderedDict[str, Pending] = OrderedDict()

    def serve(self, server: Server[Any]) -> None:
        """Register the task handlers with C{server}."""
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", t.GetTaskRequestParams, self._get)
        server.add_request_handler("tasks/cancel", t.CancelTaskRequestParams, self._cancel)
        server.add_request_handler("tasks/update", UpdateTaskParams, self._update)

    async def begin(self, pending: Pending, *, shown: bool) -> dict[str, Any]:
        """Return the task of a pending run, as the response to a call.

        :param shown: whether the client should show the review page to a person.
        :raises DaemonError: if the daemon did not return the run.
        """
        task = _to_task(await self._calls.run_status(pending.run_id))
        if shown:
            self._to_show[pending.run_id] = pending
            while len(self._to_show) > MOST_TO_SHOW:
                self._to_show.popitem(last=False)
        return {**task, "resultType": "task"}

    async def _get(self, ctx: Context, params: t.GetTaskRequestParams) -> dict[str, Any]:
        run = await self._run(ctx, params.task_id)
        return {**_to_task(run), **await self._outcome(run), **self.question(run), "resultType": "complete"}

    async def _outcome(self, run: Mapping[str, Any]) -> dict[str, Any]:
        if _to_task(run)["status"] != "completed":
            return {}
        definition = next(
            (definition for definition in await self._calls.actions() if definition.action == run.get("action")), None
        )
        result = to_call_result(_task_result(run, definition)).model_dump(by_alias=True, mode="json", exclude_none=True)
        return {"result": {**result, "resultType": "complete"}}

    def question(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a task that ask the client to open the review page, or nothing if it need not be asked.

        The client is asked while the run is pending and the client has not answered.
        """
        run_id = str(run.get("id"))
        if run.get("status") != "pending_approval":
            self._to_show.pop(run_id, None)
        pending = self._to_show.get(run_id)
        if pending is None:
            return {}
        opening = review_request(pending).model_dump(by_alias=True, mode="json", exclude_none=True)
        return {"status": "input_required", "inputRequests": {REVIEW: opening}}

    async def _cancel(self, ctx: Context, params: t.CancelTaskRequestParams) -> dict[str, Any]:
        """Cancel the run of a task if it is pending and its action allows that. A refusal of the daemon is logged.

        Return an empty object.

        :raises MCPError: if there is no such run, or the daemon did not respond.
        """
        await self._run(ctx, params.task_id)
        try:
            await self._calls.withdraw_run(params.task_id)
        except DaemonFault as error:
            _log.info("could not cancel the run of a cancelled task: %s", error)
        except DaemonError as error:
            raise _unreachable(error) from None
        return {}

    async def _update(self, ctx: Context, params: UpdateTaskParams) -> dict[str, Any]:
        await self._run(ctx, params.task_id)
        self._to_show.pop(params.task_id, None)
        return {}

    async def _run(self, ctx: Context, run_id: str) -> Mapping[str, Any]:
        """Return a run of this session, for a request about the task with its ID.

        :raises MCPError: if the client did not declare tasks, there is no such run, or the daemon did not return it.
        """
        capabilities = ctx.session.client_capabilities
        if capabilities is None or TASKS not in (capabilities.extensions or {}):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise MCPError(MISSING_CAPABILITY, "The tasks extension was not declared.", needed)
        try:
            return await self._calls.run_status(run_id)
        except DaemonFault as error:
            if error.fault.kind == "not_found":
                raise MCPError(t.INVALID_PARAMS, "There is no such task.") from None
            raise MCPError(t.INTERNAL_ERROR, str(error)) from None
        except DaemonError as error:
            raise _unreachable(error) from None


def _unreachable(error: DaemonError) -> MCPError:
    return MCPError(t.INTERNAL_ERROR, f"{error} The task goes on; ask again later.")


def to_call_result(result: ToolResult, *, sound: bool = True) -> t.CallToolResult:
    """Convert a tool's result to the SDK's result.

    :param sound: whether the client's protocol has audio blocks.
    """
    # Some clients show only structured content, others only text, so each is complete.
    data: Any = None if result.data is None else plain(result.data)
    content = [t.TextContent(text=result.text), *attachment_blocks(result, sound=sound)]
    return t.CallToolResult(content=content, structured_content=data, is_error=result.is_error)


def _to_task(run: Mapping[str, Any]) -> dict[str, Any]:
    status = str(run.get("status"))
    settled = status in ("completed", "failed", "denied", "expired", "unknown")
    return {
        "taskId": run.get("id"),
        # A task is complete when its result exists. The task of a failed call completes with an error.
        "status": "completed" if settled else "cancelled" if status == "cancelled" else "working",
        "statusMessage": _WAITING.get(status, f"status: {status}"),
        "createdAt": run.get("received_at"),
        "lastUpdatedAt": run.get("changed_at"),
        "ttlMs": KEPT_MILLISECONDS,
        "pollIntervalMs": POLL_MILLISECONDS,
    }


def _task_result(run: Mapping[str, Any], definition: ToolDefinition | None) -> ToolResult:
    """Return the result of a settled run.

    :param definition: the definition of its action, or None if it no longer exists.
    """
    if run.get("status") != "completed":
        return ToolResult(render_status(run).text, is_error=True)
    answer = DaemonAnswer(200, run)
    return render_run(answer) if definition is None else add_structured_data(definition, answer, render_run(answer))
