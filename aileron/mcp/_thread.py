"""A thread beside the daemon's reactor, and the asyncio loop that it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads

from ._bridge import Crossing, SideGone


class LoopThread:
    """An asyncio loop in a thread of its own, from L{start} until L{stop}.

    :ivar bridge: crosses into the loop and back.
    """

    def __init__(self, reactor: IReactorFromThreads, name: str = "aileron-mcp") -> None:
        self._reactor = reactor
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event | None = None
        self._stopping = False
        self._started: Deferred[None] = Deferred()
        self._ended: Deferred[None] = Deferred()
        # Not a daemon thread: one that is left behind shows as a hang, not as a crash while Python shuts down.
        self._thread = threading.Thread(target=self._run, name=name, daemon=False)
        self.bridge = Crossing(self._in_loop, reactor.callFromThread)

    def start(self) -> Deferred[None]:
        """Start it; fires when the loop runs."""
        self._thread.start()
        return self._started

    def stop(self) -> Deferred[None]:
        """Cancel whatever runs in the loop, and end the thread; fires when it is gone.  To be called once."""
        self._stopping = True
        if self._leave is not None:
            self._in_loop(self._leave.set)
        elif not self._thread.is_alive():
            self._ended.callback(None)
        return self._ended

    def _in_loop(self, act: Callable[[], object]) -> None:
        if self._loop is None or self._loop.is_closed():
            raise SideGone
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError as closed:
            raise SideGone from closed

    def _run(self) -> None:
        try:
            asyncio.run(self._stay())
        finally:
            self._reactor.callFromThread(self._gone)

    async def _stay(self) -> None:
        self._loop, self._leave = asyncio.get_running_loop(), asyncio.Event()
        self._reactor.callFromThread(self._started.callback, None)
        # A stop that came before there was an event to set has left word.
        if not self._stopping:
            await self._leave.wait()

    def _gone(self) -> None:
        self._thread.join()
        self._ended.callback(None)
