"""The bridge between a loop and a reactor that are both stepped by hand, in one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from twisted.internet.interfaces import IReactorFromThreads
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.bridge import ThreadBridge

Act = Callable[[], object]


class Stepped:
    """A reactor's queue and an asyncio loop; nothing moves but by a step.

    :ivar bridge: between them.
    :ivar left: how many tasks were still there when the loop was closed, cancelled as they were.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._for_reactor: list[Act] = []
        self.left = 0
        self.bridge = ThreadBridge(cast("IReactorFromThreads", self), self._loop)

    def callFromThread(self, act: Callable[..., object], *arguments: object) -> None:
        """See L{IReactorFromThreads}."""
        self._for_reactor.append(partial(act, *arguments))

    def close(self) -> None:
        """Cancel what is left and close the loop.  Twice is safe."""
        if self._loop.is_closed():
            return
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self.step_loop()
        self.left = len(asyncio.all_tasks(self._loop))
        self._loop.close()

    def abandon(self) -> None:
        """Close the loop with what it was given and has not done, as one that ends just then."""
        self._loop.close()

    def step_loop(self) -> None:
        """Let the loop do what it was given, and one round of what follows."""
        if self._loop.is_closed():
            return
        for _ in range(4):
            # A round to take what it was given, one to begin a task, one to finish it, one for its callbacks.
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


class SteppedCase(SynchronousTestCase):
    """Both sides by hand."""

    def setUp(self) -> None:
        self.sides = Stepped()
        self.addCleanup(self.sides.close)
        self.bridge = self.sides.bridge

    def settle(self) -> None:
        """Step until nothing moves; the SDK takes many turns."""
        for _ in range(12):
            self.sides.settle()


async def waiting(seen: list[str]) -> None:
    """Wait for nothing, and note that it was cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        seen.append("cancelled")
