"""Tells a client that its call is still under way."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from .clients import Context

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
    """What C{doing} brings; until it comes, the client hears every so often that it is still under way.

    :param words: what it hears.
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
