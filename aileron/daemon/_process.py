"""The daemon's process: ids by its clock, threads, descriptors, and a heap that is settled."""

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
"""How many descriptors the daemon can make use of."""

_RANDOM_BYTES, _IDS_AT_ONCE = 10, 64
_FOR_THE_REST = 384
_LEAST = 64
_INFINITE = resource.RLIM_INFINITY
_YOUNG, _MIDDLE, _OLD = 10_000, 10, 10


def fresh_ids(clock: IReactorTime) -> Callable[[], str]:
    """Return what makes a new id, a ULID of this moment, at each call."""
    randomness = _read_randomness()

    def make() -> str:
        milliseconds = int(clock.seconds() * 1000)
        return str(ULID(milliseconds.to_bytes(6, "big") + next(randomness)))

    return make


def _read_randomness() -> Iterator[bytes]:
    """Yield the random part of one id after the other; each read of the system's lets another thread go first."""
    while True:
        read = os.urandom(_RANDOM_BYTES * _IDS_AT_ONCE)
        yield from (read[at : at + _RANDOM_BYTES] for at in range(0, len(read), _RANDOM_BYTES))


def in_thread(reactor: Any, at_once: int = 8) -> Callable[..., Deferred[Any]]:
    """Return what calls a function in another thread of the reactor's; the answer comes in this one.

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


def allow_descriptors() -> int:
    """Raise this process's limit of descriptors as far as it may be raised, and is of use; return it as it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = raised_limit(soft, hard)
    if limit != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def raised_limit(soft: int, hard: int) -> int:
    """Return the limit to set, where these are in force: never a lower one."""
    if soft == _INFINITE:
        return soft
    return max(soft, WANTED if hard == _INFINITE else min(WANTED, hard))


def most_connections(limit: int) -> int:
    """Return how many connections the agent site may hold at once, where the process may have so many descriptors.

    Each may take a second one, for what is asked of a provider.  The daemon keeps enough for everything else.
    """
    usable = WANTED if limit == _INFINITE else min(limit, WANTED)
    return max(_LEAST, (usable - _FOR_THE_REST) // 2)


def settle_heap() -> None:
    """Look no more for garbage in what is there now, and seldom in what is new; for when everything begins to serve.

    Nearly all that a request makes goes with its last reference: looking for cycles at every 700 objects, as Python
    does, took a twentieth of its time.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
