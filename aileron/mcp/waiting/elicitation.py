"""Asks a person through the client: with a form for their values, or by opening the page that reviews a call.

Opening the page approves nothing. Only a decision on the page does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

import mcp.types as t
from attrs import evolve

from aileron.base.json import plain
from aileron.mcp._forms import Answers, Continuation, Form
from aileron.mcp._notifier import Context
from aileron.mcp._texts import Pending, ToolResult

from .clients import FOR_A_FORM, Beats, await_with_progress

FORM = "arguments"
"""The name of the form request in a response."""

MOST_FORMS = 3
"""The most forms that are shown for one call."""

_log = logging.getLogger(__name__)


def request_form(form: Form, so_far: Continuation) -> t.InputRequiredResult:
    """Return the response that requests a form from a client without a handshake. The client then repeats the call."""
    schema: Any = plain(form.schema)
    question = t.ElicitRequest(params=t.ElicitRequestFormParams(message=form.message, requested_schema=schema))
    state = evolve(so_far, forms=so_far.forms + 1).as_state()
    return t.InputRequiredResult(input_requests={FORM: question}, request_state=state)


def merge_answers(so_far: Continuation, responses: Mapping[str, object] | None) -> Continuation | ToolResult:
    """Return the state with the client's answers added, or the result that ends the call if the person declined."""
    answer = (responses or {}).get(FORM)
    if not isinstance(answer, t.ElicitResult) or so_far.shown:
        return so_far
    if answer.action != "accept":
        return _NOT_SAID
    return evolve(so_far, answers={**(so_far.answers or {}), **(answer.content or {})})


async def elicit_form(ctx: Context, form: Form, seconds: float, beats: Beats) -> Answers | ToolResult | None:
    """Show a form through a client with a handshake while the call waits. An error of the client is logged.

    :param seconds: the longest time that the person may take.
    :return: the person's answers, the result that ends the call, or None if the client showed no form.
    """
    schema: Any = plain(form.schema)
    try:
        async with asyncio.timeout(seconds):
            asking = ctx.session.elicit_form(form.message, schema, related_request_id=ctx.request_id)
            answer = await await_with_progress(ctx, asking, beats, FOR_A_FORM)
    except TimeoutError:
        names = ", ".join(form.properties)
        return ToolResult(f"The user was asked for {names} and has not answered. Nothing was sent.", is_error=True)
    except Exception:  # noqa: BLE001 - the call is answered however the client fails
        _log.info("the client showed no form", exc_info=True)
        return None
    return (answer.content or {}) if answer.action == "accept" else _NOT_SAID


_NOT_SAID = ToolResult(
    "The user was asked for what this call leaves out, and did not say. Nothing was sent. Do not make it up.",
    is_error=True,
)


REVIEW = "review"
"""The name of the review request in a response."""


def request_review(pending: Pending, so_far: Continuation) -> t.InputRequiredResult:
    """Return the response that asks a client without a handshake to open the review page, then to repeat the call."""
    state = evolve(so_far, shown=True).as_state()
    return t.InputRequiredResult(input_requests={REVIEW: review_request(pending)}, request_state=state)


def review_request(pending: Pending) -> t.ElicitRequest:
    """Return the question whether to open the review page, for the protocol without a handshake.

    This protocol cannot withdraw the question. While it is on the screen, a client may not poll for the outcome, so the
    text asks the person to close it. The text does not mention the call's status, because the question may stay on the
    screen after the decision.
    """
    message = f"Decide on the page, not here, and then close this question: {pending.action}."
    return t.ElicitRequest(params=t.ElicitRequestURLParams(message=message, url=pending.review_url))


async def review_while_waiting(ctx: Context, pending: Pending, waiting: Awaitable[ToolResult]) -> ToolResult:
    """Await C{waiting} and return its result. Meanwhile ask a client with a handshake to open the review page."""
    asking = asyncio.ensure_future(_open_page(ctx, pending))
    try:
        result = await waiting
    finally:
        opened = asking.done() and not asking.cancelled() and asking.result()
        asking.cancel()
    if opened and result.pending is None:
        await _tell_over(ctx, pending)
    return result


async def _open_page(ctx: Context, pending: Pending) -> bool:
    message = f"{pending.action} waits for your approval; nothing was sent yet. Review it on Aileron's page."
    try:
        answer = await ctx.session.elicit_url(
            message, pending.review_url, pending.run_id, related_request_id=ctx.request_id
        )
    except Exception:  # noqa: BLE001 - the call keeps waiting however the client fails
        _log.info("the client did not show the review page", exc_info=True)
        return False
    return answer.action == "accept"


async def _tell_over(ctx: Context, pending: Pending) -> None:
    try:
        await ctx.session.send_elicit_complete(pending.run_id, related_request_id=ctx.request_id)
    except Exception:  # noqa: BLE001 - the call is answered however the client fails
        _log.info("could not notify the client that the review has ended", exc_info=True)
