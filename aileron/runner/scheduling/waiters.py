"""Lets many wait for one result, and lets one at a time act on a run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@define(eq=False)
class ResultWaiters(Generic[K, T]):
    """Keeps who waits for what, and tells them in the order they came."""

    _clock: IReactorTime
    _waiting: dict[K, list[Deferred[T | None]]] = field(factory=dict)

    def enlist(self, key: K) -> Deferred[T | None]:
        """A Deferred for the next news of C{key}.  Cancelling it, or L{dismiss}, ends the wait."""
        waiter: Deferred[T | None] = Deferred()
        self._waiting.setdefault(key, []).append(waiter)
        return waiter

    def dismiss(self, key: K, waiter: Deferred[T | None]) -> None:
        """Forget C{waiter}.  Twice is safe."""
        waiting = self._waiting.get(key, [])
        if waiter in waiting:
            waiting.remove(waiter)
        if not waiting:
            self._waiting.pop(key, None)

    async def first(self, key: K, waiter: Deferred[T | None], seconds: float) -> T | None:
        """The news that C{waiter} gets, or L{None} after C{seconds}; either way it waits no longer."""
        late = self._clock.callLater(max(0.0, seconds), self._give_up, waiter)
        try:
            return await waiter
        finally:
            self.dismiss(key, waiter)
            if late.active():
                late.cancel()

    def tell(self, key: K, news: T) -> None:
        """Tell all who wait for C{key}."""
        for waiter in self._waiting.pop(key, []):
            if not waiter.called:
                waiter.callback(news)

    def _give_up(self, waiter: Deferred[T | None]) -> None:
        if not waiter.called:
            waiter.callback(None)


@define(eq=False)
class KeyedLocks:
    """Lets one at a time act on a run.

    The database alone would let one of two win; but each writes to the vault before, where nothing is undone.

    A turn is given back when the work in it has come to something, never because its coroutine is garbage: who waits
    may be so as well, and was closed, or must not go on.
    """

    _locks: dict[str, DeferredLock] = field(factory=dict, init=False)

    async def run(self, run_id: str, work: Callable[[], Coroutine[Deferred[Any], Any, T]]) -> T:
        """What C{work} comes to, once nobody else is at that run.  It must not take a turn of the same run itself."""
        lock = self._locks.setdefault(run_id, DeferredLock())
        try:
            return await lock.run(work)
        finally:
            if not lock.locked and self._locks.get(run_id) is lock:  # by now another's may stand there
                del self._locks[run_id]
