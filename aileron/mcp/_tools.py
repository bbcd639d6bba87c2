"""The tools as they are awaited from the loop: what is offered, and the calls that can be made."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from aileron.base.json import JSON

from ._definitions import OUR_TOOLS, RUN_TOOL, STATUS_TOOL, ToolDefinition
from ._forms import Answers
from ._texts import ToolResult

BEGUN_SECONDS = 1.0
"""After which a call that is not answered has begun its run, as far as anyone can tell from here."""

MOST_SEEN = 256

_RUNS_NOTHING = OUR_TOOLS - {RUN_TOOL}


@frozen
class CallOptions:
    """The options of one call.

    :ivar key: its idempotency key: a call that is made again with it is the same run.
    :ivar wait_seconds: how long it waits for a person, at most.
    :ivar early: whether it answers as soon as it waits for a person, so that this person can be shown where.
    :ivar answers: what a person said of what the call leaves out; L{None}: nobody was asked yet.
    :ivar tool_call: the id of the model's tool call, as the client reports it, or L{None}.
    """

    key: str
    wait_seconds: float
    early: bool = False
    answers: Answers | None = None
    tool_call: str | None = None


class ITools(Protocol):
    """A session's tools, its actions and their runs, as awaited from the loop."""

    async def offered(self, *, hears_changes: bool) -> Sequence[ToolDefinition]:
        """Return every tool that is listed, in order: actions by name, then our own by name.

        :param hears_changes: whether the caller is told of tools that are added later; if not, the tools that find
            unlisted actions are there too.
        """

    async def actions(self) -> Sequence[ToolDefinition]:
        """Return every action, listed or not, by name."""

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """List the session's newest runs, newest first; arguments and results, which may be long, are left out.

        :raises DaemonError: they cannot be told.
        """

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """Return how a run of this session stands, with its result.

        :raises DaemonError: it cannot be told; or there is none.
        """

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """Call a tool.  All answers are results; nothing is raised but a cancellation, which ends the wait only."""

    async def withdraw(self, key: str) -> None:
        """Withdraw the call of this key, which the client cancelled, if its action says so, and it still waits."""

    async def withdraw_run(self, run_id: str) -> None:
        """Withdraw a run by its id, if its action is withdrawn when its client cancels, and it still waits.

        :raises DaemonError: there is no such run, or it cannot be told.
        """


@frozen
class NotifyingCalls:
    """The calls among L{ITools}; C{told} is called when by one of them the session's runs may be others.

    That is: when a call of an action is answered, be it done, refused or waiting for a person; once it has gone on for
    C{begun_seconds}; when it was cut off or taken back; and when somebody asked how a run stands, and heard something
    else than the last time.  What becomes of a run after its call was answered, nobody here knows until then.
    """

    _calls: ITools
    _told: Callable[[], Awaitable[None]]
    _begun_seconds: float = BEGUN_SECONDS
    _seen: OrderedDict[str, int] = field(factory=OrderedDict, init=False)

    async def actions(self) -> Sequence[ToolDefinition]:
        return await self._calls.actions()

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        if tool not in _RUNS_NOTHING:
            return await self._run(tool, arguments, options)
        result = await self._calls.call(tool, arguments, options)
        if tool == STATUS_TOOL and not result.is_error:
            await self._tell_if_new(f"asked {arguments.get('approval_id')}", result.text)
        return result

    async def withdraw(self, key: str) -> None:
        await self._calls.withdraw(key)
        await self._told()

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        run = await self._calls.run_status(run_id)
        await self._tell_if_new(f"run {run_id}", str(run.get("status")))
        return run

    async def withdraw_run(self, run_id: str) -> None:
        await self._calls.withdraw_run(run_id)
        await self._told()

    async def _run(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        loop = asyncio.get_running_loop()
        telling: list[asyncio.Future[None]] = []  # begun when it is due: most calls are answered before
        begun = loop.call_later(self._begun_seconds, lambda: telling.append(asyncio.ensure_future(self._told())))
        wanted = False
        try:
            result = await self._calls.call(tool, arguments, options)
            wanted = result.wanted is not None  # nothing was begun
            return result
        finally:
            begun.cancel()
            if not wanted:
                await self._told()

    async def _tell_if_new(self, what: str, how: str) -> None:
        """Tell of it, unless the same was heard of it before."""
        heard = hash(how)
        if self._seen.get(what) == heard:
            return
        self._seen[what] = heard
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        await self._told()
