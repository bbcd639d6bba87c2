"""A bridge between the Twisted reactor and an asyncio loop in a thread: each can call the other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger
from twisted.python.failure import Failure

T = TypeVar("T")

_LOGGERS = ("mcp", "client", "sse_starlette", "aileron.mcp", "asyncio")
_log = Logger()


class SideGone(Exception):
    """Raised by a call into the asyncio loop if the loop has not started yet or has ended."""


class ThreadBridge:
    """A bridge over which the reactor and an asyncio loop in another thread call each other without blocking.

    :ivar loop: the loop of the other thread, or None if it does not run yet.
    :ivar is_ending: True once the loop begins no more coroutines. Those that it runs can still use the bridge.
    """

    def __init__(self, reactor: IReactorFromThreads, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._reactor = reactor
        self.loop = loop
        self.is_ending = False

    def ask(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Deferred[T]:
        """Run a coroutine in the loop.  Call in the reactor's thread.

        Cancelling the Deferred cancels the coroutine. If the loop has ended by then, the Deferred only fires.

        :param make: makes the coroutine. It is called in the loop, so that no coroutine exists that never runs. If the
            loop ends before that, it is not called.
        :raises SideGone: if the loop has not started yet or has ended.
        """
        call: _LoopCall[T] = _LoopCall(make, self)
        self.post(call.begin)
        return call.answer

    def post(self, act: Callable[[], object]) -> None:
        """Call C{act} in the loop without waiting for it.  Calls run in order.  Call in the reactor's thread.

        :raises SideGone: if the loop has not started yet or has ended.
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

    def deliver(self, act: Callable[[], object]) -> None:
        """Call C{act} in the reactor without waiting for it.  Call in the loop."""
        self._reactor.callFromThread(act)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self.loop is None or self.loop.is_closed():
            raise SideGone
        return self.loop


class _LoopCall(Generic[T]):
    """A call from the reactor into the loop.

    The coroutine is made, run and cancelled in the loop, and its result arrives in the reactor.

    :ivar answer: fires in the reactor with the result.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]], bridge: ThreadBridge) -> None:
        self._make = make
        self._bridge = bridge
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        self.answer: Deferred[T] = Deferred(self._cancel)

    def begin(self) -> None:
        """Make the coroutine and run it, unless the call was cancelled or the loop is about to end."""
        if self._cancelled:
            return
        if self._bridge.is_ending:  # the loop cancels its tasks only once, so a later one would never end
            self._bridge.deliver(lambda: self._fire(Failure(SideGone())))
            return
        try:
            self._task = asyncio.get_running_loop().create_task(self._make())
        except Exception:  # noqa: BLE001 - any error of the function that makes the coroutine is the call's failure
            failure = Failure()
            self._bridge.deliver(lambda: self._fire(failure))
        else:
            self._task.add_done_callback(self._succeed)

    def _cancel(self, _: Deferred[T]) -> None:
        self._cancelled = True
        with contextlib.suppress(SideGone):  # an ended loop runs nothing
            self._bridge.post(self._cancel_task)

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _succeed(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            result: T | Failure = Failure(CancelledError())
        elif (error := task.exception()) is not None:
            result = Failure(error)
        else:
            result = task.result()
        self._bridge.deliver(lambda: self._fire(result))

    def _fire(self, result: T | Failure) -> None:
        if not self.answer.called:  # it is, if it was cancelled
            self.answer.callback(result)


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
        """Start the thread. The returned Deferred fires when the asyncio loop runs in it."""
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
        self.bridge.is_ending = True

    def _join(self) -> None:
        self._thread.join()
        self._ended.callback(None)


class LoopOnDemand:
    """An asyncio loop for the MCP SDK in its own thread, started on first use. The SDK's logs are filtered."""

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
    """Install the log filter on the loggers of the MCP SDK and of Aileron's code that uses the SDK. Idempotent."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [LogFilter(level)]
        logger.propagate = False
