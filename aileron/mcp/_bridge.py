"""Between the reactor and an asyncio loop: results, failures and cancellations cross both ways.

Nothing here knows a thread: L{LoopThread} brings one, L{OneLoop} has both sides in one, and tests step them by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar, cast

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.python.failure import Failure
from zope.interface import Interface, implementer

T = TypeVar("T")

Do = Callable[[Callable[[], object]], None]
"""Has something done on a side, in order, soon or before it returns; callable from wherever the sides are called from.
L{SideGone}: that side has ended."""


class SideGone(Exception):
    """The other side has ended."""


class IBridge(Interface):
    """What each side may ask of the other."""

    def ask(make: Callable[[], Coroutine[Any, Any, T]]) -> Deferred[T]:
        """From the reactor: run a coroutine in the loop.

        Cancelling the Deferred cancels the coroutine; where the loop has ended meanwhile, it only fires.

        :raises SideGone: the loop has ended.
        """

    def post(act: Callable[[], object]) -> None:
        """From the reactor: call something in the loop, in order, and do not wait for it.

        :raises SideGone: the loop has ended.
        """

    async def call(make: Callable[[], Awaitable[T]]) -> T:
        """From the loop: await a Deferred, or a coroutine that awaits some, in the reactor.

        Cancelling the awaiting task cancels it there.

        :raises SideGone: the reactor has ended.
        """


@implementer(IBridge)
@frozen
class Crossing:
    """The bridge over any two sides.

    :ivar in_loop: does something in the loop.
    :ivar in_reactor: does something in the reactor.
    """

    in_loop: Do
    in_reactor: Do

    def ask(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Deferred[T]:
        """Run a coroutine in the loop."""
        errand: _Errand[T] = _Errand(make, self.in_reactor)
        # Whatever the loop makes of the cancellation, the caller waits no longer.
        errand.answer = Deferred(lambda _: self._give_up(errand))
        self.in_loop(errand.begin)
        return errand.answer

    def _give_up(self, errand: _Errand[T]) -> None:
        # A loop that has ended runs nothing any more.
        with contextlib.suppress(SideGone):
            self.in_loop(errand.cancel)

    def post(self, act: Callable[[], object]) -> None:
        """Call something in the loop."""
        self.in_loop(act)

    async def call(self, make: Callable[[], Awaitable[T]]) -> T:
        """Await something in the reactor."""
        visit: _Visit[T] = _Visit(make, self.in_loop, asyncio.get_running_loop().create_future())
        self.in_reactor(visit.begin)
        try:
            return await visit.answer
        except asyncio.CancelledError:
            self.in_reactor(visit.cancel)
            raise


class _Errand(Generic[T]):
    """From the reactor into the loop: begins and is cancelled there, is answered here."""

    answer: Deferred[T]

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]], in_reactor: Do) -> None:
        self._make = make
        self._in_reactor = in_reactor
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._make())
        self._task.add_done_callback(lambda task: self._in_reactor(lambda: self._deliver(task)))

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _deliver(self, task: asyncio.Task[T]) -> None:
        # Looked at even if nobody waits any more: asyncio complains of failures that nobody saw.
        failure = None if task.cancelled() else task.exception()
        if self.answer.called:
            return
        if task.cancelled():
            self.answer.errback(Failure(CancelledError()))
        elif failure is not None:
            self.answer.errback(Failure(failure))
        else:
            self.answer.callback(task.result())


class _Visit(Generic[T]):
    """From the loop into the reactor: begins and is cancelled there, is answered here."""

    def __init__(self, make: Callable[[], Awaitable[T]], in_loop: Do, answer: asyncio.Future[T]) -> None:
        self._make = make
        self._in_loop = in_loop
        self._doing: Deferred[T] | None = None
        self._cancelled = False
        self.answer = answer

    def begin(self) -> None:
        if not self._cancelled:
            self._doing = maybeDeferred(cast("Callable[[], Deferred[T]]", self._make))
            self._doing.addCallbacks(self._succeeded, self._failed)

    def cancel(self) -> None:
        self._cancelled = True
        if self._doing is not None:
            self._doing.cancel()

    def _succeeded(self, result: T) -> None:
        self._deliver(lambda: self.answer.set_result(result))

    def _failed(self, failure: Failure) -> None:
        error: BaseException = failure.value or RuntimeError("failed without a reason")
        if isinstance(error, CancelledError) and not self._cancelled:
            # Nobody in the loop asked for it: it must not look like a task that was cancelled.
            error = RuntimeError("cancelled in the reactor")
        self._deliver(lambda: self.answer.set_exception(error))

    def _deliver(self, settle: Callable[[], None]) -> None:
        # A loop that has ended has nobody left who waits.
        with contextlib.suppress(SideGone):
            self._in_loop(lambda: None if self.answer.done() else settle())
