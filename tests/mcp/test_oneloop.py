"""A reactor and a loop that are one: results, failures and cancellations cross at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.mcp._bridge import IBridge
from aileron.mcp._oneloop import OneLoop
from tests.mcp.stepped import waiting

T = TypeVar("T")


class OneLoopTests(SynchronousTestCase):
    """The loop is real, and runs as long as a test awaits something; the reactor is a clock."""

    def setUp(self) -> None:
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        self.run_in_loop = loop.run_until_complete
        self.one = OneLoop(loop, Clock())
        self.bridge = self.one.bridge

    def test_interface(self) -> None:
        """The bridge keeps its interface."""
        verifyObject(IBridge, self.bridge)

    def test_call(self) -> None:
        """What a Deferred brings, now or later, and how it fails, is what is awaited."""
        later: Deferred[int] = Deferred()
        error = KeyError("k")

        async def visit() -> list[object]:
            self.one.soon(lambda: later.callback(2))
            found: list[object] = [await self.bridge.call(lambda: succeed(1)), await self.bridge.call(lambda: later)]
            try:
                await self.bridge.call(lambda: fail(error))
            except KeyError as raised:
                found.append(raised)
            return found

        self.assertEqual(self.run_in_loop(visit()), [1, 2, error])

    def test_call_cancelled(self) -> None:
        """Cancelling the task cancels the Deferred, and once."""
        cancelled: list[object] = []
        unfired: Deferred[None] = Deferred(cancelled.append)

        async def give_up() -> bool:
            task = asyncio.ensure_future(self.bridge.call(lambda: unfired))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()

        self.assertTrue(self.run_in_loop(give_up()))
        self.assertEqual(cancelled, [unfired])

    def test_ask(self) -> None:
        """A coroutine's result is the Deferred's."""
        found = self.run_in_loop(_awaited(lambda: self.bridge.ask(_three)))
        self.assertEqual(found, 3)

    def test_ask_cancelled(self) -> None:
        """Cancelling the Deferred answers at once, and cancels the coroutine."""
        seen: list[str] = []

        async def give_up() -> Deferred[None]:
            asking = self.bridge.ask(lambda: waiting(seen))
            await asyncio.sleep(0)
            asking.cancel()
            self.failureResultOf(asking, CancelledError)
            await asyncio.sleep(0)
            return asking

        self.run_in_loop(give_up())
        self.assertEqual(seen, ["cancelled"])

    def test_empty(self) -> None:
        """Whatever runs is cancelled, also what is slow to end; it is over when all of it is."""
        seen: list[str] = []

        async def slow(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                seen.append(name)

        # Not in a task of the loop: that would be cancelled like any other.
        over: asyncio.Future[list[str]] = self.one._loop.create_future()

        def begin_and_empty() -> None:
            for name in "ab":
                asking = self.bridge.ask(lambda name=name: slow(name))  # type: ignore[misc]
                asking.addErrback(lambda failure: bool(failure.trap(CancelledError)))
            self.one.soon(lambda: self.one.empty().addCallback(lambda _: over.set_result(sorted(seen))))

        self.one.soon(begin_and_empty)
        self.assertEqual(self.run_in_loop(over), ["a", "b"])

    def test_nothing_to_empty(self) -> None:
        """Where nothing runs it is over too."""
        over = self.one._loop.create_future()
        self.one.soon(lambda: self.one.empty().addCallback(over.set_result))
        self.assertEqual(self.run_in_loop(over), [])


async def _three() -> int:
    await asyncio.sleep(0)
    return 3


async def _awaited(begin: Callable[[], Deferred[T]]) -> T:
    """What a Deferred brings."""
    return await begin().asFuture(asyncio.get_running_loop())
