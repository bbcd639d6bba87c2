"""Answers one C{tools/call}, in whichever way its client can wait."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import mcp.types as t
from attrs import evolve, field, frozen
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from aileron.client import LONGEST_WAIT_SECONDS, DaemonError, SessionEnvironment
from aileron.mcp._texts import Pending, Said

from .cancelling import Cancelling
from .clients import Client, Context, client_of
from .manner import ICalls, Manner
from .progress import Beats, alive, usual_beats
from .reviews import asked_first, asked_meanwhile
from .tasks import Tasks, result_of

AUDIENCE = "aileron"

CallAnswer = t.CallToolResult | t.InputRequiredResult | dict[str, Any]


@frozen
class Etiquette:
    """How clients are treated.

    :ivar session: what the launcher said of them.
    :ivar beats: when a waiting call tells of itself.
    :ivar sealing: seals what a client brings back; L{None}: by a key of this process.
    :ivar new_key: mints a fresh idempotency key.
    """

    session: SessionEnvironment = field(factory=lambda: SessionEnvironment("", ""))
    beats: Beats = usual_beats
    sealing: RequestStateSecurity | None = None
    new_key: Callable[[], str] = lambda: secrets.token_urlsafe(24)


class Calling:
    """Answers calls."""

    def __init__(self, calls: ICalls, etiquette: Etiquette) -> None:
        self._calls = calls
        self._etiquette = etiquette
        self._tasks = Tasks(calls)
        self._cancelling = Cancelling(calls.withdraw)

    def serve(self, server: Server[Any]) -> None:
        """Have C{server} do what goes with it: seal what clients bring back, hear them cancel, offer tasks."""
        sealing = self._etiquette.sealing or RequestStateSecurity.ephemeral(ttl=LONGEST_WAIT_SECONDS)
        server.middleware.append(RequestStateBoundary(sealing, default_audience=AUDIENCE))
        server.middleware.append(self._cancelling.listen)
        self._tasks.serve(server)

    async def answer(self, ctx: Context, params: t.CallToolRequestParams) -> CallAnswer:
        """The call's result; or a page to be opened first; or a task."""
        if params.input_responses and params.request_state is None:
            # Without it nobody knows which run is meant, and to run it anew would be to do it twice.
            return result_of(
                Said("requestState is missing: nothing was sent, and nothing was looked up.", is_error=True)
            )
        client = client_of(ctx, self._etiquette.session)
        first = params.request_state is None
        key = params.request_state or self._etiquette.new_key()
        early = client.runs_tasks or (client.opens_urls and first)
        manner = Manner(key, client.patience_seconds, early=early)
        with self._cancelling.calling(ctx, key):
            said = await self._said(ctx, params, manner)
            if said.pending is None or not early:
                return result_of(said)
            try:
                return await self._while_pending(ctx, params, client, manner, said.pending)
            except DaemonError:  # it went away just now; that the call waits, and by which id, is known all the same
                return result_of(said)

    async def _while_pending(
        self, ctx: Context, params: t.CallToolRequestParams, client: Client, manner: Manner, pending: Pending
    ) -> CallAnswer:
        if client.runs_tasks:
            return await self._tasks.begun(pending, shown=client.opens_urls)
        if client.modern:
            return asked_first(pending, manner.key)
        waiting = self._said(ctx, params, evolve(manner, early=False))
        return result_of(await asked_meanwhile(ctx, pending, waiting))

    async def _said(self, ctx: Context, params: t.CallToolRequestParams, manner: Manner) -> Said:
        call = self._calls.call(params.name, params.arguments or {}, manner)
        return await alive(ctx, call, self._etiquette.beats)
