"""Utilities of the daemon's process: new ids, threads, the limit of descriptors and the garbage collector."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable, Iterator
from typing import Any

from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThreadPool
from ulid import ULID

WANTED = 10_240
"""The most file descriptors that the daemon can use."""

_RANDOM_BYTES, _IDS_AT_ONCE = 10, 64
_FOR_THE_REST = 384
_LEAST = 64
_INFINITE = resource.RLIM_INFINITY
_YOUNG, _MIDDLE, _OLD = 10_000, 10, 10


def fresh_ids(clock: IReactorTime) -> Callable[[], str]:
    """Return a function that makes a new ULID of the current moment at each call."""
    randomness = _read_randomness()

    def make() -> str:
        milliseconds = int(clock.seconds() * 1000)
        return str(ULID(milliseconds.to_bytes(6, "big") + next(randomness)))

    return make


def _read_randomness() -> Iterator[bytes]:
    """Yield the random parts of ids. Randomness is read in large blocks, since each read switches to other threads."""
    while True:
        read = os.urandom(_RANDOM_BYTES * _IDS_AT_ONCE)
        yield from (read[at : at + _RANDOM_BYTES] for at in range(0, len(read), _RANDOM_BYTES))


def in_thread(reactor: Any, at_once: int = 8) -> Callable[..., Deferred[Any]]:
    """Return a function that calls a given function, with its arguments, in a thread of the reactor's pool.

    The Deferred of a call fires in the reactor's thread. Cancelling the Deferred removes a call that has not started.
    A call that has started continues, and only the wait ends.

    :param at_once: the most threads in use, including those whose wait was cancelled.
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


def allow_descriptors() -> int:
    """Raise this process's limit of file descriptors, up to L{WANTED} and the hard limit, and return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = raised_limit(soft, hard)
    if limit != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def raised_limit(soft: int, hard: int) -> int:
    """Return the soft limit to set for these soft and hard limits. It is never lower than C{soft}."""
    if soft == _INFINITE:
        return soft
    return max(soft, WANTED if hard == _INFINITE else min(WANTED, hard))


def most_connections(limit: int) -> int:
    """Return the most connections the agent site may hold at once under a limit of file descriptors.

    Each connection may need a second one to a provider. Some descriptors are reserved for everything else.
    """
    usable = WANTED if limit == _INFINITE else min(limit, WANTED)
    return max(_LEAST, (usable - _FOR_THE_REST) // 2)


def settle_heap() -> None:
    """Freeze the objects created at start-up and raise the garbage collector's thresholds. Call before serving.

    Nearly all objects of a request are freed with their last reference. With Python's default of a collection every
    700 objects, a twentieth of the time was spent on collections.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
