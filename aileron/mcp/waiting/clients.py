"""Identifies the client of a request, and reports progress to it while it waits."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar

import mcp.types as t
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from aileron.client import SessionEnvironment
from aileron.mcp._notifier import Context
from aileron.mcp._opening import TASKS

from .profiles import Client, Introduction, know_client


def identify_client(ctx: Context, session: SessionEnvironment) -> Client:
    """Identify the client that made this request."""
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
    """Return the ID of the model's tool call, cut to 128 visible ASCII characters, or None if the client sends none."""
    told = (meta or {}).get(_TOOL_CALL)
    id_ = told[:_LONGEST_TOOL_CALL] if isinstance(told, str) else ""
    return id_ if id_ and all("!" <= sign <= "~" for sign in id_) else None


_EARLY_SECONDS = (1.0, 1.0, 2.0)
"""The first reports come soon, so that a person at the screen sees what the call waits for."""

_BEAT_SECONDS = 5.0
"""Some clients cancel a call that is silent for 6 s, most only after 60."""

FOR_THE_ACTION = "Waiting for the action, or for your approval: aileron open"
FOR_A_FORM = "Waiting for what the user says in the form."

_log = logging.getLogger(__name__)

T = TypeVar("T")


Beats = Callable[[], Iterator[float]]
"""For each call: the seconds before each progress report."""


def usual_beats() -> Iterator[float]:
    """Yield a few short intervals, then equal ones."""
    return itertools.chain(_EARLY_SECONDS, itertools.repeat(_BEAT_SECONDS))


async def await_with_progress(ctx: Context, doing: Awaitable[T], beats: Beats, words: str = FOR_THE_ACTION) -> T:
    """Await C{doing}, and report progress to the client at each beat until it completes.

    :param words: the text of the progress report.
    """
    beating: list[asyncio.Task[None]] = []  # created only when due: most calls are answered before
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
        except Exception:  # noqa: BLE001 - a rim: the call goes on whether or not somebody hears of it
            _log.exception("progress could not be told")
        await asyncio.sleep(pause)
