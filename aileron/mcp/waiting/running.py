"""Runs one action for one call, waits for a decision as long as the client allows, and cancels runs."""

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
from aileron.client import Daemon, DaemonAnswer, DaemonError, DaemonFault, DaemonUnreachable
from aileron.mcp._contents import add_structured_data
from aileron.mcp._definitions import ToolDefinition
from aileron.mcp._texts import ToolResult, render_error, render_run
from aileron.mcp._tools import CallOptions

MOST = 64
REASON = "The agent cancelled its call."

_log = Logger()


class Withdrawals:
    """The calls under way whose runs can be cancelled, by idempotency key.

    The first request of a call is not cancelled with the call, because the run is unknown without its response.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._begun: OrderedDict[str, _Begun] = OrderedDict()

    async def begin(self, key: str, ask: Callable[[], Coroutine[Any, Any, DaemonAnswer]]) -> DaemonAnswer:
        """Send the first request of the call with this key, unless it was already sent, and return its response.

        Cancelling ends the wait for the response, not the request.
        """
        begun = self._begun.get(key)
        if begun is None:
            begun = self._begun[key] = _Begun(ask())
            self._drop(len(self._begun) - MOST)
        return await begun.answer()

    def forget(self, key: str) -> None:
        """Remove an answered call, so that L{withdraw} does nothing for it."""
        self._begun.pop(key, None)

    async def withdraw(self, key: str) -> None:
        """Cancel the run of the call with this key if it is not settled. A failure is only logged."""
        begun = self._begun.pop(key, None)
        if begun is None:
            return
        try:
            answer = await begun.answer()
            if answer.status == 202:
                await self._daemon.withdraw(str(answer.body.get("run_id")), REASON)
        except DaemonError as error:
            # The run is already decided or refused, or the daemon does not respond. The operator still sees the run.
            _log.info("could not cancel the run of a cancelled call: {error}", error=str(error))

    def stop(self) -> None:
        """Cancel all requests under way. Idempotent."""
        self._drop(len(self._begun))

    def _drop(self, number: int) -> None:
        for _ in range(number):
            self._begun.popitem(last=False)[1].stop()


class _Begun:
    """The first request of one call, which starts its run, and the response. Several callers may await the response."""

    def __init__(self, asking: Coroutine[Any, Any, DaemonAnswer]) -> None:
        self._over = Waiting()
        self._answer: DaemonAnswer | Failure | None = None
        self._asking = Deferred.fromCoroutine(asking)
        self._asking.addBoth(self._keep)

    async def answer(self) -> DaemonAnswer:
        """Wait for the response, and return it.

        :raises DaemonError: if the request failed.
        :raises CancelledError: if the request was cancelled.
        """
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
_MOST_MOVES = 4


class Attempts:
    """All attempts of one call, which share one wait.

    :ivar cut_off: True if an attempt that may have arrived got no response.
    """

    def __init__(self, clock: IReactorTime, wait_seconds: float) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._began_at = clock.seconds()
        self.cut_off = False

    async def answer(self, ask: Callable[[float], Awaitable[T]]) -> T:
        """Call C{ask} until a response arrives, and return it. After a lost connection, retry for the rest of the wait.

        If no attempt could be sent, retry for L{GRACE_SECONDS}, or not at all if the configured address is unusable. If
        the daemon stops, retry L{_MOST_MOVES} times: another daemon may answer at the same address.

        :param ask: called with the rest of the wait, in seconds.
        :raises DaemonUnreachable: if no response arrived in time.
        """
        pause, moves = _FIRST_PAUSE_SECONDS, _MOST_MOVES
        while True:
            try:
                answer = await ask(max(0.0, self._wait_seconds - self._seconds_passed()))
                if not moves or not _is_left_early(answer) or self._seconds_passed() >= self._wait_seconds:
                    return answer
                moves -= 1
            except DaemonFault as refused:
                if not moves or not refused.fault.details.get("stopping"):
                    raise
                moves -= 1
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


def _is_left_early(answer: object) -> bool:
    """Return whether a daemon that stops has ended the wait for a run. Another daemon can be asked at once."""
    if not isinstance(answer, DaemonAnswer) or answer.status != _UNSETTLED:
        return False
    return answer.body.get("retry_after") == 0


@frozen
class ActionRunner:
    """A runner of actions. A call of an action is one run, whose decision and result are awaited.

    :ivar withdrawals: cancels the runs of calls that their clients cancelled.
    """

    daemon: Daemon
    clock: IReactorTime
    withdrawals: Withdrawals

    async def run(self, definition: ToolDefinition, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """Run the action of C{definition}, and return its result or its status. An error of the daemon is a result too.

        Cancelling ends only the wait.
        """
        attempts = Attempts(self.clock, options.wait_seconds)

        async def ask(wait_seconds: float) -> DaemonAnswer:
            name = definition.action or ""
            return await self.daemon.run(name, arguments, options.key, wait_seconds, options.tool_call, options.parent)

        async def begin() -> DaemonAnswer:
            return await attempts.answer(lambda _left: ask(0))

        try:
            answer = await self._begin(definition, options, begin)
            if answer is None or not _is_enough(answer, options):
                answer = await attempts.answer(ask)  # the key makes this request wait for the same run
            result = add_structured_data(definition, answer, render_run(answer, definition.title))
        except DaemonError as error:
            result = render_error(error, cut_off=attempts.cut_off)
        if result.pending is None or not options.early:
            self.withdrawals.forget(options.key)
        return result

    async def _begin(
        self, definition: ToolDefinition, options: CallOptions, begin: Callable[[], Coroutine[Any, Any, DaemonAnswer]]
    ) -> DaemonAnswer | None:
        """Start the run without waiting and return its first status, if the call needs that.

        The status is needed to cancel the run together with the call, or to show the review page early. Otherwise send
        nothing and return None: the caller's request starts the run and waits for it.

        :raises DaemonError: if the request failed.
        """
        if definition.gated and definition.withdrawn_on_cancel:
            return await self.withdrawals.begin(options.key, begin)
        return await begin() if definition.gated and options.early else None


def _is_enough(first: DaemonAnswer, options: CallOptions) -> bool:
    """Return whether the first response already answers the call, so that nothing has to be waited for."""
    return first.status != _UNSETTLED or (options.early and first.body.get("status") == "pending_approval")
