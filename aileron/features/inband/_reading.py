"""Reads long JSON beside the reactor, one text at a time, so that memory for what was read is needed once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from attrs import Factory, frozen
from twisted.internet.defer import DeferredLock

SHORT_BYTES, FEW_VALUES = 64 * 1024, 2000
"""Of a text that is read at once: it takes a millisecond or two."""

Read: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function with its arguments, and answers what it returns."""


async def _at_once(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


@frozen
class LongReading:
    """Gives turns to those who have something to read.

    Within a turn a request's values are held; all that it takes beyond its text is needed once in the daemon.

    :ivar in_thread: calls a function in another thread.
    """

    in_thread: Read
    _turn: DeferredLock = Factory(DeferredLock)
    _own_turns: WeakValueDictionary[str, DeferredLock] = Factory(WeakValueDictionary)

    @asynccontextmanager
    async def turn(self, session_id: str, size: int, values: int = 0) -> AsyncIterator[Read]:
        """Wait for a turn, if it takes one, and give what reads.  Of one session one at a time waits for all others.

        :param size: of the text, in bytes.
        :param values: that it has.
        """
        if size <= SHORT_BYTES and values <= FEW_VALUES:
            yield _at_once
            return
        own = self._own_turns.setdefault(session_id, DeferredLock())
        await own.acquire()
        try:
            await self._turn.acquire()
            try:
                yield self.in_thread
            finally:
                self._turn.release()
        finally:
            own.release()
