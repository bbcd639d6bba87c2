"""The bridge between a loop and a reactor that are both stepped by hand, in one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from aileron.mcp._bridge import Crossing, SideGone

Act = Callable[[], object]


class Stepped:
    """Two queues and an asyncio loop; nothing moves but by a step.

    :ivar bridge: between them.
    :ivar left: how many tasks were still there when the loop was closed, cancelled as they were.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._for_loop: list[Act] = []
        self._for_reactor: list[Act] = []
        self.loop_gone = False
        self.left = 0
        self.bridge = Crossing(self._in_loop, self._for_reactor.append)

    def close(self) -> None:
        """Cancel what is left and close the loop.  Twice is safe."""
        if self._loop.is_closed():
            return
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self.step_loop()
        self.left = len(asyncio.all_tasks(self._loop))
        self._loop.close()

    def step_loop(self) -> None:
        """Let the loop do what it was given, and one round of what follows."""
        acts, self._for_loop[:] = self._for_loop[:], []
        for act in acts:
            self._loop.call_soon(cast("Callable[[], None]", act))
        for _ in range(3):
            # A round to begin a task, one to finish it, one for its callbacks.
            self._loop.call_soon(self._loop.stop)
            self._loop.run_forever()

    def step_reactor(self) -> None:
        """Let the reactor do what it was given."""
        acts, self._for_reactor[:] = self._for_reactor[:], []
        for act in acts:
            act()

    def settle(self) -> None:
        """Step both until nothing moves."""
        for _ in range(8):
            self.step_loop()
            self.step_reactor()

    def _in_loop(self, act: Act) -> None:
        if self.loop_gone:
            raise SideGone
        self._for_loop.append(act)


async def waiting(seen: list[str]) -> None:
    """Wait for nothing, and note that it was cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        seen.append("cancelled")
