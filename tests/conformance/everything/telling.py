"""Tools that tell of something before they answer: progress, a log, a change of the lists."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp.types as t
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, SubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError

from .answers import Context, Tool, ToolAnswer, Tools, form, result

_BETWEEN_SECONDS = 0.05


async def _with_progress(ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(_BETWEEN_SECONDS)
    return result("All steps are completed.")


async def _with_logging(ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    for happened in ("started", "processing data", "completed"):
        await ctx.session.send_log_message("info", f"Tool execution {happened}", related_request_id=ctx.request_id)
        await asyncio.sleep(_BETWEEN_SECONDS)
    return result("Whoever wants a log has it.")


async def _streaming(ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    await ctx.session.report_progress(1, 2, "About to ask")
    return t.InputRequiredResult(input_requests={"user_name": form("What is your name?", name={"type": "string"})})


async def _missing_capability(ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        wanted: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool asks the client's model.", wanted)
    return result("The client has a model.")


def telling(bus: SubscriptionBus) -> Tools:
    """All of them.

    :param bus: by which clients hear of changes.
    """

    def changing(event: ServerEvent) -> Tool:
        async def change(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
            await bus.publish(event)
            return result("The list is another.")

        return change

    return {
        "test_tool_with_progress": _with_progress,
        "test_tool_with_logging": _with_logging,
        "test_logging_tool": _with_logging,
        "test_streaming_elicitation": _streaming,
        "test_missing_capability": _missing_capability,
        "test_trigger_tool_change": changing(ToolsListChanged()),
        "test_trigger_prompt_change": changing(PromptsListChanged()),
    }
