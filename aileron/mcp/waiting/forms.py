"""Has the client show a form for what is for a person to say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import mcp.types as t
from attrs import evolve

from aileron.mcp._forms import Answers, Form
from aileron.mcp._texts import Said
from aileron.values import plain

from .clients import Context
from .rounds import Round

FORM = "arguments"
"""What we call the question."""

_log = logging.getLogger(__name__)


def form_first(form: Form, so_far: Round) -> t.InputRequiredResult:
    """Of the protocol without a handshake: have it filled in, then call again."""
    schema: Any = plain(form.schema)
    question = t.ElicitRequest(params=t.ElicitRequestFormParams(message=form.message, requested_schema=schema))
    return t.InputRequiredResult(input_requests={FORM: question}, request_state=so_far.as_state())


def heard(so_far: Round, responses: Mapping[str, object] | None) -> Round | Said:
    """What is known with what the client brings back; or why the call is over."""
    answer = (responses or {}).get(FORM)
    if not isinstance(answer, t.ElicitResult):
        return so_far
    if answer.action != "accept":
        return _NOT_SAID
    return evolve(so_far, answers={**(so_far.answers or {}), **(answer.content or {})})


async def filled_in_here(ctx: Context, form: Form, seconds: float) -> Answers | Said | None:
    """Of the protocol with a handshake: have it filled in while the call waits.

    :return: what the person said; or why the call is over; L{None}: the client shows no form after all.
    """
    schema: Any = plain(form.schema)
    try:
        async with asyncio.timeout(seconds):
            answer = await ctx.session.elicit_form(form.message, schema, related_request_id=ctx.request_id)
    except TimeoutError:
        return Said(f"The user was asked for {form.names} and has not answered. Nothing was sent.", is_error=True)
    except Exception:  # noqa: BLE001 - a rim: whatever the client makes of the question, the call is answered
        _log.info("the client showed no form", exc_info=True)
        return None
    return (answer.content or {}) if answer.action == "accept" else _NOT_SAID


_NOT_SAID = Said(
    "The user was asked for what this call leaves out, and did not say. Nothing was sent. Do not make it up.",
    is_error=True,
)
