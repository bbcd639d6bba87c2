"""Who calls, as far as one request tells."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import mcp.types as t
from attrs import frozen
from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from aileron.client import SessionEnvironment

from .profiles import Profile, profile_of

TASKS = "io.modelcontextprotocol/tasks"

Context = ServerRequestContext[Any, Any]


@frozen
class Client:
    """One of them.

    :ivar modern: whether it speaks the protocol without a handshake, where a server asks nothing by itself.
    :ivar opens_urls: whether a person will see an address that we ask it to open.
    :ivar shows_forms: whether a person will see a form that we ask it to show.
    :ivar runs_tasks: whether it can be given a task in place of a result.
    :ivar patience_seconds: how long this call may wait for a person.
    :ivar hears_changes: whether it hears that the list of tools is another.
    """

    profile: Profile
    modern: bool
    opens_urls: bool
    shows_forms: bool
    runs_tasks: bool
    patience_seconds: float
    hears_changes: bool


def client_of(ctx: Context, session: SessionEnvironment) -> Client:
    """Whoever made this request."""
    params = ctx.session.client_params
    capabilities = ctx.session.client_capabilities or t.ClientCapabilities()
    profile = profile_of(params.client_info.name if params is not None else "", session.client)
    modern = ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS
    # What the launcher saw and set, it did of the agent that it launched, not of one that this started in turn.
    launched = profile.name == session.client
    attended = session.attended and launched
    elicitation = capabilities.elicitation
    declares_urls = elicitation is not None and elicitation.url is not None
    # Before there were addresses to open, a client that could be asked at all showed forms.
    declares_forms = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    can_be_asked = modern or ctx.session.can_send_request
    return Client(
        profile,
        modern,
        opens_urls=attended and profile.opens_urls and declares_urls and can_be_asked,
        shows_forms=(attended or not launched) and profile.shows_forms and declares_forms and can_be_asked,
        runs_tasks=modern and TASKS in (capabilities.extensions or {}),
        patience_seconds=profile.patience(session.wait_seconds, hears_progress=_hears_progress(ctx)),
        # Who opened its session itself may bear a launched agent's name, and was set up by nobody.
        hears_changes=profile.hears_changes(launched and bool(session.token)),
    )


def _hears_progress(ctx: Context) -> bool:
    return (ctx.meta or {}).get("progress_token") is not None


_EARLY_SECONDS = (1.0, 1.0, 2.0, 4.0, 7.0)
"""Somebody who watches sees soon that the call waits, and for what."""

_BEAT_SECONDS = 15.0
"""Well inside the 60 s after which clients give up a call that stays silent."""

FOR_THE_ACTION = "Waiting for the action, or for the user's approval."
FOR_A_FORM = "Waiting for what the user says in the form."

_log = logging.getLogger(__name__)

T = TypeVar("T")


Beats = Callable[[], Iterator[float]]
"""For each call: the seconds before each word of progress."""


def usual_beats() -> Iterator[float]:
    """Soon at first, then steadily."""
    return itertools.chain(_EARLY_SECONDS, itertools.repeat(_BEAT_SECONDS))


async def alive(ctx: Context, doing: Awaitable[T], beats: Beats, words: str = FOR_THE_ACTION) -> T:
    """Await C{doing}, and report progress to the client at each beat until it is done.

    :param words: the text of the progress report.
    """
    beating: list[asyncio.Task[None]] = []  # begun when it is due: most calls are answered before
    loop = asyncio.get_running_loop()
    pauses = beats()
    first = loop.call_later(next(pauses), lambda: beating.append(loop.create_task(_tell_on(ctx, pauses, words))))
    try:
        return await doing
    finally:
        first.cancel()
        for telling in beating:
            telling.cancel()


async def _tell_on(ctx: Context, pauses: Iterator[float], words: str) -> None:
    for count, pause in enumerate(pauses, 1):
        try:
            await ctx.session.report_progress(count, None, words)
        except Exception:  # noqa: BLE001 - a rim: the call goes on whether or not somebody hears of it
            _log.exception("progress could not be told")
        await asyncio.sleep(pause)
