"""Tells a client that its call is still under way."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable
from typing import TypeVar

from .clients import Context

BEAT_SECONDS = 15.0
"""Well inside the 60 s after which clients give up a call that stays silent."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


async def alive(ctx: Context, doing: Awaitable[T], beat_seconds: float) -> T:
    """What C{doing} brings; until it comes, the client hears every so often that it is still under way."""
    beating: list[asyncio.Task[None]] = []  # begun when it is due: most calls are answered before
    loop = asyncio.get_running_loop()
    first = loop.call_later(beat_seconds, lambda: beating.append(loop.create_task(_tell_on(ctx, beat_seconds))))
    try:
        return await doing
    finally:
        first.cancel()
        for telling in beating:
            telling.cancel()


async def _tell_on(ctx: Context, beat_seconds: float) -> None:
    for beats in itertools.count(1):
        try:
            await ctx.session.report_progress(beats, None, "Waiting for the action, or for the user's approval.")
        except Exception:  # noqa: BLE001 - a rim: the call goes on whether or not somebody hears of it
            _log.exception("progress could not be told")
        await asyncio.sleep(beat_seconds)
