"""Identifies the client of a request, and reports progress to it while it waits."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar

import mcp.types as t
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from aileron.base.trace_context import TraceParent, read_traceparent
from aileron.client import SessionEnvironment
from aileron.mcp._notifier import Context
from aileron.mcp._opening import TASKS

from .profiles import Client, Introduction, know_client


def identify_client(ctx: Context, session: SessionEnvironment) -> Client:
    """Return the client that made this request, with its abilities."""
    params = ctx.session.client_params
    capabilities = ctx.session.client_capabilities or t.ClientCapabilities()
    elicitation = capabilities.elicitation
    said = Introduction(
        name=params.client_info.name if params is not None else "",
        modern=ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS,
        declares_urls=elicitation is not None and elicitation.url is not None,
        # Before URLs were added, a client with elicitation always showed forms.
        declares_forms=elicitation is not None and (elicitation.form is not None or elicitation.url is None),
        runs_tasks=TASKS in (capabilities.extensions or {}),
        can_be_asked=ctx.session.can_send_request,
        hears_progress=(ctx.meta or {}).get("progress_token") is not None,
    )
    return know_client(said, session)


_TOOL_CALL = "claudecode/toolUseId"
_LONGEST_TOOL_CALL = 128


def find_tool_call(meta: Mapping[str, object] | None) -> str | None:
    """Return the ID of the model's tool call, cut to 128 characters, or None if it is missing or not visible ASCII."""
    told = (meta or {}).get(_TOOL_CALL)
    id_ = told[:_LONGEST_TOOL_CALL] if isinstance(told, str) else ""
    return id_ if id_ and all("!" <= sign <= "~" for sign in id_) else None


_TRACEPARENT = "traceparent"


def find_parent(ctx: Context) -> TraceParent | None:
    """Return the client's place in its own trace, or None if the client names no valid one.

    The one in C{_meta} is the call's, so it counts before the one in the header of the HTTP request.
    """
    told = (ctx.meta or {}).get(_TRACEPARENT)
    in_meta = [told.encode("utf-8", "replace")] if isinstance(told, str) else []
    headers = ctx.request.headers.getlist(_TRACEPARENT) if ctx.request is not None else []
    return read_traceparent(in_meta) or read_traceparent([each.encode("latin-1", "replace") for each in headers])


_EARLY_SECONDS = (1.0, 1.0, 2.0)
"""The seconds before the first progress reports. They are short, so that a person soon sees why the call waits."""

_BEAT_SECONDS = 5.0
"""The seconds before each later progress report. Some clients cancel a call without progress after 6 s, most after
60."""

FOR_THE_ACTION = "Waiting for the action, or for your approval: aileron open"
FOR_A_FORM = "Waiting for what the user says in the form."

_log = logging.getLogger(__name__)

T = TypeVar("T")


Beats = Callable[[], Iterator[float]]
"""A function that returns the seconds before each progress report of a call."""


def usual_beats() -> Iterator[float]:
    """Yield the seconds between progress reports: a few short intervals, then equal ones."""
    return itertools.chain(_EARLY_SECONDS, itertools.repeat(_BEAT_SECONDS))


async def await_with_progress(ctx: Context, doing: Awaitable[T], beats: Beats, words: str = FOR_THE_ACTION) -> T:
    """Await C{doing} and return its result. Until then, report progress to the client at each beat.

    :param words: the text of the progress report.
    """
    beating: list[asyncio.Task[None]] = []  # created only if the call lasts: most calls are answered before
    loop = asyncio.get_running_loop()
    pauses = beats()
    first = loop.call_later(
        next(pauses), lambda: beating.append(loop.create_task(_report_progress(ctx, pauses, words)))
    )
    try:
        return await doing
    finally:
        first.cancel()
        for telling in beating:
            telling.cancel()


async def _report_progress(ctx: Context, pauses: Iterator[float], words: str) -> None:
    for count, pause in enumerate(pauses, 1):
        try:
            await ctx.session.report_progress(count, None, words)
        except Exception:  # noqa: BLE001 - the call continues even if the client gets no progress
            _log.exception("could not report progress to the client")
        await asyncio.sleep(pause)
