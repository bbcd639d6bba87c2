"""One at a time for each run: whoever decides it, takes it back or begins it waits for who is at it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock

T = TypeVar("T")


@define(eq=False)
class KeyedLocks:
    """The database alone would let one of two win; but each writes to the vault before, where nothing is undone.

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
