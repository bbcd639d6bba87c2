"""One loop for the reactor and for asyncio, where a process has nothing else to do than to serve one client.

Two threads would wake each other several times for every call, and a processor that sleeps takes its time to wake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from attrs import field, frozen
from twisted.internet.defer import Deferred

from ._bridge import Crossing


@frozen
class OneLoop:
    """A reactor that runs on an asyncio loop.

    :ivar reactor: runs on C{_loop}.
    :ivar bridge: both of its sides are here, so that whatever is asked of the other begins at once.
    """

    _loop: asyncio.AbstractEventLoop
    reactor: Any
    bridge: Crossing = field(factory=lambda: Crossing(_at_once, _at_once), init=False)

    def soon(self, act: Callable[[], object]) -> None:
        """Call something in the loop, once that runs."""
        self._loop.call_soon(act)

    def empty(self) -> Deferred[Any]:
        """Cancel whatever runs in the loop; fires when all of it is over."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        return Deferred.fromFuture(asyncio.gather(*tasks, return_exceptions=True))


def install() -> OneLoop:
    """Make it this process's, which has no reactor yet."""
    from twisted.internet import asyncioreactor

    loop = asyncio.SelectorEventLoop()
    asyncioreactor.install(loop)
    from twisted.internet import reactor

    return OneLoop(loop, reactor)


def _at_once(act: Callable[[], object]) -> None:
    act()
