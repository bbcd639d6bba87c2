"""Many who wait for one thing, each with a Deferred of its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@define(eq=False)
class ResultWaiters(Generic[K, T]):
    """Who waits for what; told in the order they came."""

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
