"""A launcher stands behind its session for as long as this request of it stays open."""

from __future__ import annotations

from collections.abc import AsyncIterator

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.api._endpoint import Parts, Table, Visit
from aileron.api._faults import Streamed
from aileron.api._guard import Who
from aileron.api.shapes.schemas import TEXT
from aileron.errors import NotFound

from .events import STILL_HERE_SECONDS

TABLE = Table()

_STREAM = {**TEXT, "contentMediaType": "text/event-stream"}


@TABLE.route("GET", "/v1/sessions/<session_id>/lease", agents=Who.LAUNCH, answers={200: _STREAM})
async def hold_lease(visit: Visit, parts: Parts, session_id: str) -> Streamed:
    """Stand behind a leased session: while this is open it is not orphaned.  It ends with the session.

    Server-sent events: one that it is held, then only that somebody is still there.
    """
    if not await _is_leased(parts, session_id):
        raise NotFound("There is no such session with a lease.")
    visit.keep_place(session_id)
    return Streamed(_held(parts, session_id), "text/event-stream")


async def _held(parts: Parts, session_id: str) -> AsyncIterator[bytes]:
    clock: IReactorTime = parts.clock
    with parts.leases.held(session_id):
        yield b"event: held\ndata: {}\n\n"
        while True:
            await deferLater(clock, STILL_HERE_SECONDS)
            if not await _is_leased(parts, session_id):
                return
            yield b": still here\n\n"


async def _is_leased(parts: Parts, session_id: str) -> bool:
    session = await parts.sessions.get(session_id)
    return session is not None and session.live and session.leased
