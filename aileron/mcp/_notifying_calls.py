"""Says when the session's runs may be others, as far as its calls tell.  Everything here runs in the asyncio loop."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from aileron.values import JSON

from ._definitions import OUR_TOOLS, RUN_TOOL, STATUS_TOOL, ToolDefinition
from ._texts import ToolResult
from ._tools import CallOptions, ICalls

BEGUN_SECONDS = 1.0
"""After which a call that is not answered has begun its run, as far as anyone can tell from here."""

MOST_SEEN = 256

_RUNS_NOTHING = OUR_TOOLS - {RUN_TOOL}


@frozen
class NotifyingCalls:
    """The same calls; C{told} is called when by one of them the session's runs may be others.

    That is: when a call of an action is answered, be it done, refused or waiting for a person; once it has gone on for
    C{begun_seconds}; when it was cut off or taken back; and when somebody asked how a run stands, and heard something
    else than the last time.  What becomes of a run after its call was answered, nobody here knows until then.
    """

    _calls: ICalls
    _told: Callable[[], Awaitable[None]]
    _begun_seconds: float = BEGUN_SECONDS
    _seen: OrderedDict[str, int] = field(factory=OrderedDict, init=False)

    async def actions(self) -> Sequence[ToolDefinition]:
        """See L{ICalls}."""
        return await self._calls.actions()

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """See L{ICalls}."""
        if tool not in _RUNS_NOTHING:
            return await self._run(tool, arguments, options)
        result = await self._calls.call(tool, arguments, options)
        if tool == STATUS_TOOL and not result.is_error:
            await self._heard(f"asked {arguments.get('approval_id')}", result.text)
        return result

    async def withdraw(self, key: str) -> None:
        """See L{ICalls}."""
        await self._calls.withdraw(key)
        await self._told()

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """See L{ICalls}."""
        run = await self._calls.run_status(run_id)
        await self._heard(f"run {run_id}", str(run.get("status")))
        return run

    async def withdraw_run(self, run_id: str) -> None:
        """See L{ICalls}."""
        await self._calls.withdraw_run(run_id)
        await self._told()

    async def _run(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        loop = asyncio.get_running_loop()
        telling: list[asyncio.Task[None]] = []  # begun when it is due: most calls are answered before
        begun = loop.call_later(self._begun_seconds, lambda: telling.append(loop.create_task(self._tell())))
        wanted = False
        try:
            result = await self._calls.call(tool, arguments, options)
            wanted = result.wanted is not None  # nothing was begun
            return result
        finally:
            begun.cancel()
            if not wanted:
                await self._tell()

    async def _tell(self) -> None:
        await self._told()

    async def _heard(self, what: str, how: str) -> None:
        """Tell, unless this was heard of it before."""
        heard = hash(how)
        if self._seen.get(what) == heard:
            return
        self._seen[what] = heard
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        await self._told()
