"""The interface of the tools as coroutines of the asyncio loop, and a wrapper that reports changes of runs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from aileron.base.json import JSON
from aileron.base.trace_context import TraceParent

from ._definitions import OUR_TOOLS, RUN_TOOL, STATUS_TOOL, ToolDefinition
from ._forms import Answers
from ._texts import ToolResult

BEGUN_SECONDS = 1.0
"""The seconds after which an unanswered call is assumed to have started its run."""

MOST_SEEN = 256

_RUNS_NOTHING = OUR_TOOLS - {RUN_TOOL}


@frozen
class CallOptions:
    """The options of one call.

    :ivar key: the idempotency key. Repeated calls with one key are one run.
    :ivar wait_seconds: the longest wait for a decision.
    :ivar early: True to return as soon as the run is pending, so that the review page can be shown.
    :ivar answers: a person's values for omitted arguments, or None if there was no form yet.
    :ivar tool_call: the ID of the model's tool call, as the client reports it, or None.
    :ivar parent: the client's place in its own trace, or None.
    """

    key: str
    wait_seconds: float
    early: bool = False
    answers: Answers | None = None
    tool_call: str | None = None
    parent: TraceParent | None = None


class ITools(Protocol):
    """A session's tools, actions and runs, as coroutines of the asyncio loop."""

    async def offered(self, *, hears_changes: bool) -> Sequence[ToolDefinition]:
        """Return every listed tool in order: actions by name, then Aileron's own by name.

        :param hears_changes: whether the caller is notified of tools added later. If not, the tools that find unlisted
            actions are always included.
        """

    async def actions(self) -> Sequence[ToolDefinition]:
        """Return every action, listed or not, by name."""

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the session's newest runs, newest first, without arguments and results, which may be long.

        :raises DaemonError: if the daemon did not return the runs.
        """

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """Return the status of a run of this session, with its result.

        :raises DaemonError: if there is no such run, or the daemon did not return it.
        """

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """Call a tool. Every response and error is a result. Cancelling ends only the wait, not the run."""

    async def withdraw(self, key: str) -> None:
        """Cancel the pending run of the cancelled call with this key, if its action allows that."""

    async def withdraw_run(self, run_id: str) -> None:
        """Cancel the run with this ID if it is pending and its action allows that.

        :raises DaemonError: if there is no such run, or the daemon did not respond.
        """


@frozen
class NotifyingCalls:
    """A wrapper of L{ITools} that calls C{notify} when a call may have changed the session's runs.

    C{notify} is called when a call of an action has lasted for C{begun_seconds}, and when the call ends, unless it only
    requested a form. C{notify} is also called after a withdrawal, and when a status call returns a new status. Later
    changes of a run are not noticed until the next status call.
    """

    _calls: ITools
    _notify: Callable[[], Awaitable[None]]
    _begun_seconds: float = BEGUN_SECONDS
    _seen: OrderedDict[str, int] = field(factory=OrderedDict, init=False)

    async def actions(self) -> Sequence[ToolDefinition]:
        return await self._calls.actions()

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        if tool not in _RUNS_NOTHING:
            return await self._run(tool, arguments, options)
        result = await self._calls.call(tool, arguments, options)
        if tool == STATUS_TOOL and not result.is_error:
            await self._notify_if_new(f"asked {arguments.get('approval_id')}", result.text)
        return result

    async def withdraw(self, key: str) -> None:
        await self._calls.withdraw(key)
        await self._notify()

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        run = await self._calls.run_status(run_id)
        await self._notify_if_new(f"run {run_id}", str(run.get("status")))
        return run

    async def withdraw_run(self, run_id: str) -> None:
        await self._calls.withdraw_run(run_id)
        await self._notify()

    async def _run(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        loop = asyncio.get_running_loop()
        telling: list[asyncio.Future[None]] = []  # created only if the call lasts: most calls are answered before
        begun = loop.call_later(self._begun_seconds, lambda: telling.append(asyncio.ensure_future(self._notify())))
        wanted = False
        try:
            result = await self._calls.call(tool, arguments, options)
            wanted = result.wanted is not None  # a form is needed, so no run was started
            return result
        finally:
            begun.cancel()
            if not wanted:
                await self._notify()

    async def _notify_if_new(self, what: str, how: str) -> None:
        """Call C{notify} if the status C{how} differs from the last known status of the run C{what}."""
        heard = hash(how)
        if self._seen.get(what) == heard:
            return
        self._seen[what] = heard
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        await self._notify()
