"""Answers C{tools/call} requests in the form that the client supports, and processes the client's cancellations.

The SDK ends our wait if a client cancels, and also if the client disconnects. Only a cancellation requests to cancel
the run, and only the client's notification distinguishes it from a disconnection. A notification for a call that was
already answered has no effect.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import mcp.types as t
from attrs import evolve, field, frozen
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from aileron.client import LONGEST_WAIT_SECONDS, DaemonError, SessionEnvironment
from aileron.mcp._forms import Continuation
from aileron.mcp._notifier import Context
from aileron.mcp._texts import Pending, ToolResult
from aileron.mcp._tools import CallOptions, NotifyingCalls
from aileron.model.runs import Call

from .clients import Beats, await_with_progress, find_parent, find_tool_call, identify_client, usual_beats
from .elicitation import MOST_FORMS, elicit_form, merge_answers, request_form, request_review, review_while_waiting
from .profiles import Client
from .tasks import McpTasks, to_call_result

MOST = 256
_SESSION_HEADER = "mcp-session-id"

_Name = tuple[str, str]


class Cancelling:
    """The calls under way, by their clients' request IDs.

    :param withdraw: cancels the run of the call with this key, if its action allows that.
    """

    def __init__(self, withdraw: Callable[[str], Awaitable[None]]) -> None:
        self._withdraw = withdraw
        self._keys: OrderedDict[_Name, str] = OrderedDict()

    @contextmanager
    def calling(self, ctx: Context, key: str) -> Iterator[None]:
        """Within the C{with} block, let the client cancel a call.

        If only the wait for the result is cancelled, the client can still cancel the call afterwards.

        :param ctx: the request of the client, whose ID names the call.
        :param key: the idempotency key of the call's run.
        """
        name = _name(ctx, ctx.request_id)
        self._keys[name] = key
        while len(self._keys) > MOST:
            self._keys.popitem(last=False)
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._keys.pop(name, None)
            raise
        else:
            self._keys.pop(name, None)

    async def listen(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Run as middleware of the SDK: cancel the run of a call when its client sends a cancellation."""
        if ctx.method == "notifications/cancelled":
            key = self._keys.pop(_name(ctx, (ctx.params or {}).get("requestId")), None)
            if key is not None:
                await self._withdraw(key)
        return await call_next(ctx)


def _name(ctx: Context, request_id: object) -> _Name:
    """Return a key that identifies a request among all clients.

    Over HTTP it consists of the header that identifies the connection, and the request's ID.
    """
    headers: Mapping[str, Any] = getattr(ctx.request, "headers", None) or {}
    return str(headers.get(_SESSION_HEADER, "")), f"{type(request_id).__name__}:{request_id}"


AUDIENCE = "aileron"
_FIRST_WITH_SOUND = "2025-03-26"

CallAnswer = t.CallToolResult | t.InputRequiredResult | dict[str, Any]


@frozen
class ClientPolicy:
    """The settings and helpers with which tool calls of clients are answered.

    :ivar session: the launcher's settings for the agent.
    :ivar beats: the intervals between a waiting call's progress reports.
    :ivar sealing: seals the state that a client sends back, or None to use a key of this process.
    :ivar new_key: returns a new idempotency key.
    """

    session: SessionEnvironment = field(factory=lambda: SessionEnvironment("", ""))
    beats: Beats = usual_beats
    sealing: RequestStateSecurity | None = None
    new_key: Callable[[], str] = lambda: Call.mint_key(secrets.token_urlsafe(24))


class CallHandler:
    """Answers tool calls: runs the tool, and asks the person for missing values or shows the review page meanwhile."""

    def __init__(self, calls: NotifyingCalls, policy: ClientPolicy) -> None:
        self._calls = calls
        self._policy = policy
        self._tasks = McpTasks(calls)
        self._cancelling = Cancelling(calls.withdraw)

    def serve(self, server: Server[Any]) -> None:
        """Register the task handlers with C{server}, and middleware for sealed client state and for cancellations."""
        sealing = self._policy.sealing or RequestStateSecurity.ephemeral(ttl=LONGEST_WAIT_SECONDS)
        server.middleware.append(RequestStateBoundary(sealing, default_audience=AUDIENCE))
        server.middleware.append(self._cancelling.listen)
        self._tasks.serve(server)

    async def answer(self, ctx: Context, params: t.CallToolRequestParams) -> CallAnswer:
        """Answer the call with its result, a form to fill in, a page to open, or a task."""
        answer = await self._answer(ctx, params)
        if not isinstance(answer, ToolResult):
            return answer
        return to_call_result(answer, sound=str(ctx.session.protocol_version) >= _FIRST_WITH_SOUND)

    async def _answer(self, ctx: Context, params: t.CallToolRequestParams) -> CallAnswer | ToolResult:
        if params.input_responses and params.request_state is None:
            # Without the state the run is unknown, and a new run could repeat the change.
            return ToolResult("requestState is missing: nothing was sent, and nothing was looked up.", is_error=True)
        client = identify_client(ctx, self._policy.session)
        so_far = merge_answers(Continuation.of(params.request_state, self._policy.new_key), params.input_responses)
        if isinstance(so_far, ToolResult):
            return so_far
        early = client.runs_tasks or (client.opens_urls and not so_far.shown)
        answers = so_far.answers if client.shows_forms else so_far.answers or {}
        told = find_tool_call(ctx.meta), find_parent(ctx)
        options = CallOptions(so_far.key, client.patience_seconds, early, answers, *told)
        with self._cancelling.calling(ctx, options.key):
            result, options = await self._call_with_forms(ctx, params, client, options)
            if result.wanted is not None and client.modern and client.shows_forms and so_far.forms < MOST_FORMS:
                return request_form(result.wanted, evolve(so_far, answers=options.answers))
            if result.pending is None or not early:
                return result
            try:
                return await self._while_pending(ctx, params, client, options, result.pending)
            except DaemonError:  # the daemon did not respond, but the pending call and its ID are known
                return result

    async def _call_with_forms(
        self, ctx: Context, params: t.CallToolRequestParams, client: Client, options: CallOptions
    ) -> tuple[ToolResult, CallOptions]:
        """Make the call. While it lacks a person's values, and the client can show forms, show a form and call again.

        The time of the person counts towards the call's limit, because the client does not extend it.

        :return: the last result, and the options with all answers.
        """
        clock = asyncio.get_running_loop().time
        over = clock() + client.patience_seconds
        result = await self._call(ctx, params, options)
        for _ in range(MOST_FORMS):
            if result.wanted is None or client.modern or not client.shows_forms:
                break
            answers = await elicit_form(ctx, result.wanted, over - clock(), self._policy.beats)
            if isinstance(answers, ToolResult):
                return answers, options
            said = {**(options.answers or {}), **(answers or {})}
            options = evolve(options, answers=said, wait_seconds=max(over - clock(), 0.0))
            result = await self._call(ctx, params, options)
            if answers is None:
                break
        return result, options

    async def _while_pending(
        self, ctx: Context, params: t.CallToolRequestParams, client: Client, options: CallOptions, pending: Pending
    ) -> CallAnswer | ToolResult:
        if client.runs_tasks:
            return await self._tasks.begin(pending, shown=client.opens_urls)
        if client.modern:
            return request_review(pending, Continuation(options.key, options.answers))
        waiting = self._call(ctx, params, evolve(options, early=False))
        return await review_while_waiting(ctx, pending, waiting)

    async def _call(self, ctx: Context, params: t.CallToolRequestParams, options: CallOptions) -> ToolResult:
        call = self._calls.call(params.name, params.arguments or {}, options)
        return await await_with_progress(ctx, call, self._policy.beats)
