"""Runs a coroutine to its end in the one reactor of this process, and stops for Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from aileron.client import Connections

T = TypeVar("T")


def drive(work: Callable[[Connections], Awaitable[T]]) -> T:
    """Run C{work} in the reactor, with connections that are closed afterwards, and return its result.

    :raises KeyboardInterrupt: if a signal cancelled C{work}, which has cleaned up.
    :raises Exception: any exception of C{work}.
    """
    from twisted.internet import reactor

    doing = _Doing(cast("Any", reactor), work)
    doing.reactor.callWhenRunning(doing.start)
    doing.reactor.addSystemEventTrigger("before", "shutdown", doing.stop)
    before = signal.getsignal(signal.SIGINT)
    doing.reactor.run()
    signal.signal(signal.SIGINT, before)
    return doing.result()


@contextmanager
def interruptible(handle: Callable[[int, FrameType | None], object] = signal.default_int_handler) -> Iterator[None]:
    """Within the context, call C{handle} at Ctrl-C, which by default raises C{KeyboardInterrupt} at once.

    Use this while waiting for a person's answer, because the reactor stops only after the wait.

    :raises KeyboardInterrupt: if Ctrl-C was pressed before, and the reactor has not stopped yet.
    """
    before = signal.signal(signal.SIGINT, handle)
    try:
        if isinstance(before, _Interrupts) and before.came:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Interrupts:
    """The handler that stops the reactor at the first Ctrl-C, and records it."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self.came = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if not self.came:
            self.came = True
            self._reactor.callFromThread(self._reactor.stop)


class _Doing(Generic[T]):
    """The coroutine that L{drive} runs, and its result."""

    def __init__(self, reactor: Any, work: Callable[[Connections], Awaitable[T]]) -> None:
        self.reactor = reactor
        self._work = work
        self._under_way: Deferred[T] | None = None
        self._over: Deferred[None] = Deferred()
        self._ended: list[T | Failure] = []
        self._stopped = False
        self._interrupts = _Interrupts(reactor)

    def start(self) -> None:
        """Start the coroutine, and handle Ctrl-C from now on. The reactor stops when it ends."""
        signal.signal(signal.SIGINT, self._interrupts)
        self._under_way = Deferred.fromCoroutine(self._with_connections())
        self._under_way.addBoth(self._note)

    def stop(self) -> Deferred[None] | None:
        """Cancel the coroutine if it has not ended.

        :return: a Deferred that fires when the coroutine has cleaned up, or None if there is nothing to wait for.
        """
        if self._ended or self._under_way is None:
            return None
        self._stopped = True
        self._under_way.cancel()
        return self._over

    def result(self) -> T:
        """Return the result of the coroutine, or raise its exception.

        :raises KeyboardInterrupt: if the coroutine was cancelled, or has not ended.
        """
        if self._stopped or not self._ended:
            raise KeyboardInterrupt
        ended = self._ended[0]
        if isinstance(ended, Failure):
            ended.raiseException()
        return ended

    async def _with_connections(self) -> T:
        connections = Connections(self.reactor)
        try:
            return await self._work(connections)
        finally:
            await connections.close()

    def _note(self, ended: T | Failure) -> None:
        self._ended.append(ended)
        self._over.callback(None)
        if not self._stopped and not self._interrupts.came:
            self.reactor.stop()
