"""Work that waits for something outside, or takes long, in the reactor's own threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.threads import deferToThreadPool


def in_thread(reactor: Any, at_once: int = 8) -> Callable[..., Deferred[Any]]:
    """Calls a function in another thread; what it answers comes in this one.

    Cancelling takes the call back if it has not begun; later it only ends the wait.

    :param at_once: how many threads it takes at most, those included for which nobody waits any more.
    """
    turns = DeferredSemaphore(at_once)

    def call(work: Callable[..., Any], *args: Any) -> Deferred[Any]:
        return turns.acquire().addCallback(lambda _: begin(work, *args))

    def begin(work: Callable[..., Any], *args: Any) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()

        def done(result: Any) -> None:
            turns.release()
            if not answer.called:
                answer.callback(result)

        threads = reactor.getThreadPool()
        deferToThreadPool(reactor, threads, lambda: None if answer.called else work(*args)).addBoth(done)
        return answer

    return call
