"""Runs one action for one call, waiting for a person as long as its client can bear; and takes calls back."""

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
    """Begun calls that can be taken back, by their keys.

    Each is begun by a first request that no cancellation cuts off: without its answer nobody would know the run.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._begun: OrderedDict[str, _Begun] = OrderedDict()

    async def begin(self, key: str, ask: Callable[[], Coroutine[Any, Any, DaemonAnswer]]) -> DaemonAnswer:
        """Begin: return what the first request answers; it is asked once for each key.

        Cancelling ends the wait for it, not the request.
        """
        begun = self._begun.get(key)
        if begun is None:
            begun = self._begun[key] = _Begun(ask())
            self._drop(len(self._begun) - MOST)
        return await begun.answer()

    def forget(self, key: str) -> None:
        """Forget the call, which is answered: nothing can be cancelled any more."""
        self._begun.pop(key, None)

    async def withdraw(self, key: str) -> None:
        """Take back the run of this key, if it can be; its failure is only logged, for nobody waits for it."""
        begun = self._begun.pop(key, None)
        if begun is None:
            return
        try:
            answer = await begun.answer()
            if answer.status == 202:
                await self._daemon.withdraw(str(answer.body.get("run_id")), REASON)
        except DaemonError as error:
            # Decided at the last moment, refused from the start, or the daemon is away: it is where a person sees it.
            _log.info("a cancelled call was not taken back: {error}", error=str(error))

    def stop(self) -> None:
        """End what is still asked.  Twice is safe."""
        self._drop(len(self._begun))

    def _drop(self, number: int) -> None:
        for _ in range(number):
            self._begun.popitem(last=False)[1].stop()


class _Begun:
    """One first request, whose answer many may wait for."""

    def __init__(self, asking: Coroutine[Any, Any, DaemonAnswer]) -> None:
        self._over = Waiting()
        self._answer: DaemonAnswer | Failure | None = None
        self._asking = Deferred.fromCoroutine(asking)
        self._asking.addBoth(self._keep)

    async def answer(self) -> DaemonAnswer:
        """Return the answer, or raise its failure."""
        await self._over.wait(over=self._answer is not None)
        if isinstance(self._answer, DaemonAnswer):
            return self._answer
        raise (None if self._answer is None else self._answer.value) or CancelledError()

    def stop(self) -> None:
        """End it, if it has not ended."""
        self._asking.cancel()

    def _keep(self, answer: DaemonAnswer | Failure) -> None:
        self._answer = answer
        self._over.fire()


T = TypeVar("T")

GRACE_SECONDS = 3.0
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0


class Attempts:
    """All attempts of one call, which together have one wait.

    :ivar cut_off: whether one of them may have arrived and got no answer.
    """

    def __init__(self, clock: IReactorTime, wait_seconds: float) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._began_at = clock.seconds()
        self.cut_off = False

    async def answer(self, ask: Callable[[float], Awaitable[T]]) -> T:
        """Ask until an answer comes: a daemon that went away meanwhile has the whole wait to come back.

        A program that turns out not to be the daemon is not asked again, unless it was the daemon before.

        :param ask: is told how much of the wait is left, in seconds.
        :raises DaemonUnreachable: it did not come back, or was never there.
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
    """Runs actions.

    :ivar withdrawals: of the calls that their clients cancelled.
    """

    daemon: Daemon
    clock: IReactorTime
    withdrawals: Withdrawals

    async def run(self, definition: ToolDefinition, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """Run the action behind C{definition}.  Cancelling ends the wait, never the run."""
        attempts = Attempts(self.clock, options.wait_seconds)

        async def ask(wait_seconds: float) -> DaemonAnswer:
            name = definition.action or ""
            return await self.daemon.run(name, arguments, options.key, wait_seconds, options.tool_call)

        async def begin() -> DaemonAnswer:
            return await attempts.answer(lambda _left: ask(0))

        try:
            answer = await self._begin(definition, options, begin)
            if answer is None or not _is_enough(answer, options):
                answer = await attempts.answer(ask)  # by its key it is the same run
            result = add_structured_data(definition, answer, render_run(answer, definition.title))
        except DaemonError as error:
            result = render_error(error, cut_off=attempts.cut_off)
        if result.pending is None or not options.early:
            self.withdrawals.forget(options.key)
        return result

    async def _begin(
        self, definition: ToolDefinition, options: CallOptions, begin: Callable[[], Coroutine[Any, Any, DaemonAnswer]]
    ) -> DaemonAnswer | None:
        """Begin the run, and tell how it stands at once, where somebody wants to know that.

        Most calls are one request, which waits.
        """
        if definition.gated and definition.withdrawn_on_cancel:
            return await self.withdrawals.begin(options.key, begin)
        return await begin() if definition.gated and options.early else None


def _is_enough(first: DaemonAnswer, options: CallOptions) -> bool:
    """Return whether there is nothing to wait for, or nobody who wants to wait yet."""
    return first.status != _UNSETTLED or (options.early and first.body.get("status") == "pending_approval")
