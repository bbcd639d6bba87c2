"""A bridge between the reactor and an asyncio loop in a thread, for results, failures and cancellations."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger
from twisted.python.failure import Failure

T = TypeVar("T")

_LOGGERS = ("mcp", "client", "sse_starlette", "aileron.mcp", "asyncio")
_log = Logger()


class SideGone(Exception):
    """Raised if the loop has not started yet or has ended."""


class ThreadBridge:
    """A bridge over which the reactor and an asyncio loop in another thread call each other without blocking.

    :ivar loop: the loop of the other thread, or None if it does not run yet.
    """

    def __init__(self, reactor: IReactorFromThreads, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._reactor = reactor
        self.loop = loop

    def ask(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Deferred[T]:
        """Run a coroutine in the loop.  Call in the reactor's thread.

        Cancelling the Deferred cancels the coroutine. If the loop has ended by then, the Deferred only fires.

        :raises SideGone: the loop has not started yet or has ended.
        """
        loop = self._running_loop()
        future = asyncio.run_coroutine_threadsafe(make(), loop)

        def cancel(_: Deferred[T]) -> None:
            if not loop.is_closed():  # a closed loop runs nothing
                future.cancel()

        answer: Deferred[T] = Deferred(cancel)
        future.add_done_callback(lambda _: self._reactor.callFromThread(_deliver, future, answer))
        return answer

    def post(self, act: Callable[[], object]) -> None:
        """Call C{act} in the loop without waiting for it.  Calls run in order.  Call in the reactor's thread.

        :raises SideGone: the loop has not started yet or has ended.
        """
        try:
            self._running_loop().call_soon_threadsafe(act)
        except RuntimeError as closed:
            raise SideGone from closed

    async def call(self, make: Callable[[], Awaitable[T]]) -> T:
        """Run a function that returns a Deferred, or a coroutine, in the reactor and return its result.

        Call in the loop.

        Cancelling the awaiting task cancels the work in the reactor.
        """
        call: _ReactorCall[T] = _ReactorCall(make, self.post, asyncio.get_running_loop().create_future())
        self._reactor.callFromThread(call.begin)
        try:
            return await call.answer
        except asyncio.CancelledError:
            self._reactor.callFromThread(call.cancel)
            raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self.loop is None or self.loop.is_closed():
            raise SideGone
        return self.loop


def _deliver(future: Future[T], answer: Deferred[T]) -> None:
    """Fire C{answer} with the result of the coroutine, unless it has fired already."""
    if answer.called:
        return
    if future.cancelled():
        answer.errback(Failure(CancelledError()))
    elif (error := future.exception()) is not None:
        answer.errback(Failure(error))
    else:
        answer.callback(future.result())


class _ReactorCall(Generic[T]):
    """A call from the loop into the reactor.

    It starts and is cancelled in the reactor, and its result arrives in the loop.
    """

    def __init__(
        self, make: Callable[[], Awaitable[T]], post: Callable[[Callable[[], object]], None], answer: asyncio.Future[T]
    ) -> None:
        self._make = make
        self._post = post
        self._under_way: Deferred[T] | None = None
        self._cancelled = False
        self.answer = answer

    def begin(self) -> None:
        if not self._cancelled:
            self._under_way = maybeDeferred(cast("Callable[[], Deferred[T]]", self._make))
            self._under_way.addCallbacks(self._succeed, self._fail)

    def cancel(self) -> None:
        self._cancelled = True
        if self._under_way is not None:
            self._under_way.cancel()

    def _succeed(self, result: T) -> None:
        self._settle(lambda: self.answer.set_result(result))

    def _fail(self, failure: Failure) -> None:
        error: BaseException = failure.value or RuntimeError("failed without a reason")
        if isinstance(error, CancelledError) and not self._cancelled:
            # The loop did not cancel this call, so the call must not look like a cancelled task.
            error = RuntimeError("cancelled in the reactor")
        self._settle(lambda: self.answer.set_exception(error))

    def _settle(self, settle: Callable[[], None]) -> None:
        # If the loop has ended, no task is waiting.
        with contextlib.suppress(SideGone):
            self._post(lambda: None if self.answer.done() else settle())


class LoopThread:
    """An asyncio loop in its own thread, from L{start} until L{stop}.

    :ivar bridge: the bridge between the loop and the reactor.
    """

    def __init__(self, reactor: IReactorFromThreads, name: str = "aileron-mcp") -> None:
        self._reactor = reactor
        self._leave: asyncio.Event | None = None
        self._stopping = False
        self._started: Deferred[None] = Deferred()
        self._ended: Deferred[None] = Deferred()
        # Not a daemon thread: a thread that is never stopped then shows as a hang, not as a crash while Python shuts
        # down.
        self._thread = threading.Thread(target=self._run, name=name, daemon=False)
        self.bridge = ThreadBridge(reactor)

    def start(self) -> Deferred[None]:
        """Start the thread.  Fires when the loop runs."""
        self._thread.start()
        return self._started

    def stop(self) -> Deferred[None]:
        """Cancel everything that runs in the loop and end the thread.

        Fires when the thread has ended.  Call only once.
        """
        self._stopping = True
        if self._leave is not None:
            self.bridge.post(self._leave.set)
        elif not self._thread.is_alive():
            self._ended.callback(None)
        return self._ended

    def _run(self) -> None:
        try:
            asyncio.run(self._stay())
        finally:
            self._reactor.callFromThread(self._join)

    async def _stay(self) -> None:
        self.bridge.loop, self._leave = asyncio.get_running_loop(), asyncio.Event()
        self._reactor.callFromThread(self._started.callback, None)
        # A stop before the event existed is recorded in _stopping.
        if not self._stopping:
            await self._leave.wait()

    def _join(self) -> None:
        self._thread.join()
        self._ended.callback(None)


class LoopOnDemand:
    """An asyncio loop in its own thread, started on first use, with the SDK's logs filtered."""

    def __init__(self, reactor: IReactorFromThreads, name: str) -> None:
        self._thread = LoopThread(reactor, name)
        self._started: Deferred[None] | None = None

    def bridge(self) -> Deferred[ThreadBridge]:
        """Start the loop if needed and return the bridge once the loop runs."""
        if self._started is None:
            filter_logs()
            self._started = self._thread.start()
        ready: Deferred[ThreadBridge] = Deferred()
        self._started.addCallback(lambda _: ready.callback(self._thread.bridge))
        return ready

    def stop(self) -> Deferred[None] | None:
        """Stop the loop if it was started.  Call only once.

        :return: fires when the thread has ended, or None if the loop was not started.
        """
        return None if self._started is None else self._thread.stop()


class LogFilter(logging.Handler):
    """A log handler that logs only the logger, the place and the exception type of each record, without its message."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record's logger, place and exception type, without its message."""
        kind = record.exc_info[0].__qualname__ if record.exc_info and record.exc_info[0] else "no exception"
        place = f"{record.pathname}:{record.lineno}"
        _log.warn("{name} logged a problem at {place}: {kind}", name=record.name, place=place, kind=kind)


def filter_logs(level: int = logging.ERROR) -> None:
    """Install the log filter on the loggers of the SDK and of this package's use of it.  Idempotent."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [LogFilter(level)]
        logger.propagate = False
