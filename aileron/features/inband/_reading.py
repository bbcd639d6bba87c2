"""Parses long JSON in a thread, one text at a time, to limit the memory for parsing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from attrs import Factory, frozen
from twisted.internet.defer import DeferredLock

SHORT_BYTES, FEW_VALUES = 64 * 1024, 2000
"""The largest size and number of values of a text that is parsed in the reactor's thread. This takes a millisecond or
two."""

Read: TypeAlias = Callable[..., Awaitable[Any]]
"""A coroutine function that calls a function with arguments and returns the function's result."""


async def _at_once(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


@frozen
class LongReading:
    """A queue for parsing long texts.

    A request's parsed values exist only within its turn, so the daemon holds the values of one long text at a time.

    :ivar in_thread: calls a function in another thread.
    """

    in_thread: Read
    _turn: DeferredLock = Factory(DeferredLock)
    _own_turns: WeakValueDictionary[str, DeferredLock] = Factory(WeakValueDictionary)

    @asynccontextmanager
    async def turn(self, session_id: str, size: int, values: int = 0) -> AsyncIterator[Read]:
        """Wait for a turn if the text is long, and yield a function that calls the parser.

        The function calls the parser directly if the text is short, else in the thread. Each session has at most one
        place in the queue.

        :param size: the size of the text, in bytes.
        :param values: the number of JSON values in the text.
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
