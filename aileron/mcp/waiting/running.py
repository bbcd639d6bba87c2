"""Runs one action for one call, waits for a decision as long as its client allows, and cancels runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.json import JSON
from aileron.base.waiting import Waiting
from aileron.client import Daemon, DaemonAnswer, DaemonError, DaemonUnreachable
from aileron.mcp._contents import add_structured_data
from aileron.mcp._definitions import ToolDefinition
from aileron.mcp._texts import ToolResult, render_error, render_run
from aileron.mcp._tools import CallOptions

MOST = 64
REASON = "The agent cancelled its call."

_log = Logger()


class Withdrawals:
    """Calls under way whose runs can be cancelled, by their keys.

    The first request of a call is never cancelled: without its response the run is unknown.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._begun: OrderedDict[str, _Begun] = OrderedDict()

    async def begin(self, key: str, ask: Callable[[], Coroutine[Any, Any, DaemonAnswer]]) -> DaemonAnswer:
        """Send the first request of a call, once for each key, and return its response.

        Cancelling ends the wait for the response, not the request.
        """
        begun = self._begun.get(key)
        if begun is None:
            begun = self._begun[key] = _Begun(ask())
            self._drop(len(self._begun) - MOST)
        return await begun.answer()

    def forget(self, key: str) -> None:
        """Remove an answered call. It can no longer be cancelled."""
        self._begun.pop(key, None)

    async def withdraw(self, key: str) -> None:
        """Cancel the run of this key if possible. A failure is only logged, because no caller waits for it."""
        begun = self._begun.pop(key, None)
        if begun is None:
            return
        try:
            answer = await begun.answer()
            if answer.status == 202:
                await self._daemon.withdraw(str(answer.body.get("run_id")), REASON)
        except DaemonError as error:
            # Already decided or refused, or the daemon does not respond: the operator sees the run.
            _log.info("could not cancel the run of a cancelled call: {error}", error=str(error))

    def stop(self) -> None:
        """Cancel all requests under way. Idempotent."""
        self._drop(len(self._begun))

    def _drop(self, number: int) -> None:
        for _ in range(number):
            self._begun.popitem(last=False)[1].stop()


class _Begun:
    """One first request, whose response several callers may await."""

    def __init__(self, asking: Coroutine[Any, Any, DaemonAnswer]) -> None:
        self._over = Waiting()
        self._answer: DaemonAnswer | Failure | None = None
        self._asking = Deferred.fromCoroutine(asking)
        self._asking.addBoth(self._keep)

    async def answer(self) -> DaemonAnswer:
        """Return the response, or raise its failure."""
        await self._over.wait(over=self._answer is not None)
        if isinstance(self._answer, DaemonAnswer):
            return self._answer
        raise (None if self._answer is None else self._answer.value) or CancelledError()

    def stop(self) -> None:
        """Cancel the request if it has not ended."""
        self._asking.cancel()

    def _keep(self, answer: DaemonAnswer | Failure) -> None:
        self._answer = answer
        self._over.fire()


T = TypeVar("T")

GRACE_SECONDS = 3.0
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0


class Attempts:
    """All attempts of one call, which share one wait.

    :ivar cut_off: whether an attempt that may have arrived got no response.
    """

    def __init__(self, clock: IReactorTime, wait_seconds: float) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._began_at = clock.seconds()
        self.cut_off = False

    async def answer(self, ask: Callable[[float], Awaitable[T]]) -> T:
        """Retry until a response arrives. If the daemon disconnects, retry for the rest of the wait.

        If the program at the address is not the daemon, do not retry, unless the daemon responded before.

        :param ask: called with the rest of the wait, in seconds.
        :raises DaemonUnreachable: the daemon did not return, or was never reached.
        """
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return await ask(max(0.0, self._wait_seconds - self._seconds_passed()))
            except DaemonUnreachable as lost:
                self.cut_off = self.cut_off or lost.sent
                if self._seconds_passed() + pause > self._patience(lost):
                    raise evolve(lost, sent=self.cut_off) from None
            await deferLater(self._clock, pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _patience(self, lost: DaemonUnreachable) -> float:
        if self.cut_off:
            return max(self._wait_seconds, GRACE_SECONDS)
        return 0.0 if lost.misdirected else GRACE_SECONDS

    def _seconds_passed(self) -> float:
        return self._clock.seconds() - self._began_at


_UNSETTLED = 202


@frozen
class ActionRunner:
    """A runner of actions.

    :ivar withdrawals: cancels the runs of calls that their clients cancelled.
    """

    daemon: Daemon
    clock: IReactorTime
    withdrawals: Withdrawals

    async def run(self, definition: ToolDefinition, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """Run the action of C{definition}. Cancelling ends the wait, never the run."""
        attempts = Attempts(self.clock, options.wait_seconds)

        async def ask(wait_seconds: float) -> DaemonAnswer:
            name = definition.action or ""
            return await self.daemon.run(name, arguments, options.key, wait_seconds, options.tool_call)

        async def begin() -> DaemonAnswer:
            return await attempts.answer(lambda _left: ask(0))

        try:
            answer = await self._begin(definition, options, begin)
            if answer is None or not _is_enough(answer, options):
                answer = await attempts.answer(ask)  # the key identifies the run
            result = add_structured_data(definition, answer, render_run(answer, definition.title))
        except DaemonError as error:
            result = render_error(error, cut_off=attempts.cut_off)
        if result.pending is None or not options.early:
            self.withdrawals.forget(options.key)
        return result

    async def _begin(
        self, definition: ToolDefinition, options: CallOptions, begin: Callable[[], Coroutine[Any, Any, DaemonAnswer]]
    ) -> DaemonAnswer | None:
        """Start the run and return its first status, if the caller needs it before the wait.

        Most calls need only one request, which waits.
        """
        if definition.gated and definition.withdrawn_on_cancel:
            return await self.withdrawals.begin(options.key, begin)
        return await begin() if definition.gated and options.early else None


def _is_enough(first: DaemonAnswer, options: CallOptions) -> bool:
    """Return True if the first response needs no further wait."""
    return first.status != _UNSETTLED or (options.early and first.body.get("status") == "pending_approval")
