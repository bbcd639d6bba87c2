"""Has the client open the page where a call is reviewed.  That it was opened decides nothing: only the page does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

import mcp.types as t
from attrs import evolve

from aileron.mcp._forms import Continuation
from aileron.mcp._texts import Pending, ToolResult

from .clients import Context

_log = logging.getLogger(__name__)

REVIEW = "review"
"""What we call the question."""


def asked_first(pending: Pending, so_far: Continuation) -> t.InputRequiredResult:
    """Of the protocol without a handshake: have the page opened, then call again, which goes on with the same run."""
    state = evolve(so_far, shown=True).as_state()
    return t.InputRequiredResult(input_requests={REVIEW: page_of(pending)}, request_state=state)


def page_of(pending: Pending) -> t.ElicitRequest:
    """The question whether to open the page, of the protocol without a handshake, which cannot take it back.

    A client may ask for no outcome while it stands on its screen, so it says that it is to be closed; and as it stands
    there after the decision, too, it says nothing of how the call stands.
    """
    message = f"Decide on the page, not here, and then close this question: {pending.action}."
    return t.ElicitRequest(params=t.ElicitRequestURLParams(message=message, url=pending.review_url))


async def asked_meanwhile(ctx: Context, pending: Pending, waiting: Awaitable[ToolResult]) -> ToolResult:
    """Of the protocol with a handshake: have the page opened while the call waits, which ends by itself."""
    asking = asyncio.ensure_future(_opened(ctx, pending))
    try:
        result = await waiting
    finally:
        opened = asking.done() and not asking.cancelled() and asking.result()
        asking.cancel()
    if opened and result.pending is None:
        await _over(ctx, pending)
    return result


async def _opened(ctx: Context, pending: Pending) -> bool:
    try:
        answer = await ctx.session.elicit_url(
            _message(pending), pending.review_url, pending.run_id, related_request_id=ctx.request_id
        )
    except Exception:  # noqa: BLE001 - a rim: whatever the client makes of the question, the call waits on
        _log.info("the client did not show the review page", exc_info=True)
        return False
    return answer.action == "accept"


async def _over(ctx: Context, pending: Pending) -> None:
    try:
        await ctx.session.send_elicit_complete(pending.run_id, related_request_id=ctx.request_id)
    except Exception:  # noqa: BLE001 - a rim: the call is answered whether or not somebody hears of it
        _log.info("the client could not be told that the review is over", exc_info=True)


def _message(pending: Pending) -> str:
    return f"{pending.action} waits for your approval; nothing was sent yet. Review it on Aileron's page."
