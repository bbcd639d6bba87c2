"""Has the client show a form for what is for a person to say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import mcp.types as t
from attrs import evolve

from aileron.mcp._forms import Answers, Continuation, Form
from aileron.mcp._texts import ToolResult
from aileron.values import plain

from .clients import FOR_A_FORM, Beats, Context, alive

FORM = "arguments"
"""What we call the question."""

MOST_FORMS = 3
"""After which a call is given up whose person says what cannot be taken."""

_log = logging.getLogger(__name__)


def form_first(form: Form, so_far: Continuation) -> t.InputRequiredResult:
    """Of the protocol without a handshake: have it filled in, then call again."""
    schema: Any = plain(form.schema)
    question = t.ElicitRequest(params=t.ElicitRequestFormParams(message=form.message, requested_schema=schema))
    state = evolve(so_far, forms=so_far.forms + 1).as_state()
    return t.InputRequiredResult(input_requests={FORM: question}, request_state=state)


def heard(so_far: Continuation, responses: Mapping[str, object] | None) -> Continuation | ToolResult:
    """What is known with what the client brings back; or why the call is over."""
    answer = (responses or {}).get(FORM)
    if not isinstance(answer, t.ElicitResult) or so_far.shown:
        return so_far
    if answer.action != "accept":
        return _NOT_SAID
    return evolve(so_far, answers={**(so_far.answers or {}), **(answer.content or {})})


async def filled_in_here(ctx: Context, form: Form, seconds: float, beats: Beats) -> Answers | ToolResult | None:
    """Of the protocol with a handshake: have it filled in while the call waits.

    :param seconds: how long the person has for that.
    :return: what the person said; or why the call is over; L{None}: the client shows no form after all.
    """
    schema: Any = plain(form.schema)
    try:
        async with asyncio.timeout(seconds):
            asking = ctx.session.elicit_form(form.message, schema, related_request_id=ctx.request_id)
            answer = await alive(ctx, asking, beats, FOR_A_FORM)
    except TimeoutError:
        return ToolResult(f"The user was asked for {form.names} and has not answered. Nothing was sent.", is_error=True)
    except Exception:  # noqa: BLE001 - a rim: whatever the client makes of the question, the call is answered
        _log.info("the client showed no form", exc_info=True)
        return None
    return (answer.content or {}) if answer.action == "accept" else _NOT_SAID


_NOT_SAID = ToolResult(
    "The user was asked for what this call leaves out, and did not say. Nothing was sent. Do not make it up.",
    is_error=True,
)
