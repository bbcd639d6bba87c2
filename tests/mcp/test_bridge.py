"""Results, failures and cancellations cross the bridge both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from twisted.internet.defer import CancelledError, Deferred

from aileron.base.bridge import SideGone
from tests.mcp.stepped import SteppedCase, waiting


def noted(made: list[str]) -> Coroutine[object, object, None]:
    """Make a coroutine, and note that it was made."""
    made.append("made")
    return waiting([])


class AskTests(SteppedCase):
    """From the reactor into the loop."""

    def test_result(self) -> None:
        """The result comes back once both sides have moved, and not before."""

        async def add() -> int:
            await asyncio.sleep(0)
            return 3

        asking = self.bridge.ask(add)
        self.assertNoResult(asking)
        self.sides.step_loop()
        self.assertNoResult(asking)
        self.sides.settle()
        self.assertEqual(self.successResultOf(asking), 3)

    def test_failure(self) -> None:
        """A failure comes back as the very exception."""
        error = KeyError("k")

        async def fail() -> None:
            raise error

        asking = self.bridge.ask(fail)
        self.sides.settle()
        self.assertIs(self.failureResultOf(asking).value, error)

    def test_cancel(self) -> None:
        """Cancelling answers at once and cancels the coroutine."""
        seen: list[str] = []

        asking = self.bridge.ask(lambda: waiting(seen))
        self.sides.settle()
        asking.cancel()
        self.failureResultOf(asking, CancelledError)
        self.assertEqual(seen, [])
        self.sides.settle()
        self.assertEqual(seen, ["cancelled"])

    def test_cancelled_in_the_loop(self) -> None:
        """A coroutine that the loop cancels is a cancellation here too."""

        async def give_up() -> None:
            raise asyncio.CancelledError

        asking = self.bridge.ask(give_up)
        self.sides.settle()
        self.failureResultOf(asking, CancelledError)

    def test_loop_ends_first(self) -> None:
        """No coroutine is made before the loop runs it, so that none is left if the loop ends first."""
        made: list[str] = []
        asking = self.bridge.ask(lambda: noted(made))
        asking.addErrback(lambda _: None)
        self.sides.abandon()
        self.sides.settle()
        self.assertEqual(made, [])
        asking.cancel()

    def test_loop_is_ending(self) -> None:
        """A loop that cancels its tasks begins no coroutine, and the caller gets an error."""
        made: list[str] = []
        self.bridge.is_ending = True
        asking = self.bridge.ask(lambda: noted(made))
        self.sides.settle()
        self.failureResultOf(asking, SideGone)
        self.assertEqual(made, [])

    def test_cancelled_before_it_began(self) -> None:
        """No coroutine is made for a call that was cancelled before the loop came to it."""
        made: list[str] = []
        asking = self.bridge.ask(lambda: noted(made))
        asking.cancel()
        self.failureResultOf(asking, CancelledError)
        self.sides.settle()
        self.assertEqual(made, [])

    def test_cannot_be_made(self) -> None:
        """An error of the function that makes the coroutine is the call's failure."""

        def fail() -> Coroutine[object, object, None]:
            raise KeyError("k")

        asking = self.bridge.ask(fail)
        self.sides.settle()
        self.failureResultOf(asking, KeyError)

    def test_order(self) -> None:
        """What is posted is done in order."""
        done: list[int] = []
        for number in range(5):
            self.bridge.post(lambda number=number: done.append(number))  # type: ignore[misc]
        self.assertEqual(done, [])
        self.sides.settle()
        self.assertEqual(done, [0, 1, 2, 3, 4])

    def test_gone(self) -> None:
        """A loop that has ended says so, and no coroutine is made for it."""
        self.sides.close()
        self.assertRaises(SideGone, self.bridge.ask, lambda: self.fail("a coroutine was made"))
        self.assertRaises(SideGone, self.bridge.post, lambda: None)

    def test_cancelled_after_the_loop(self) -> None:
        """What a loop has taken with it to its end can still be cancelled."""
        asking = self.bridge.ask(asyncio.Event().wait)
        self.sides.settle()
        self.sides.close()
        asking.cancel()
        self.failureResultOf(asking, CancelledError)


class CallTests(SteppedCase):
    """From the loop into the reactor."""

    def setUp(self) -> None:
        super().setUp()
        self.remote: Deferred[int] = Deferred()

    async def visit(self) -> int:
        """Await what the reactor has."""
        return await self.bridge.call(lambda: self.remote)

    def test_result(self) -> None:
        """The loop waits until the reactor's Deferred fires, or a coroutine that awaits it ends there."""

        async def reactor_side() -> int:
            return await self.remote

        for start in (lambda: self.remote, reactor_side):
            self.remote = Deferred()
            asking = self.bridge.ask(lambda start=start: self.bridge.call(start))  # type: ignore[misc]
            self.sides.settle()
            self.assertNoResult(asking)
            self.remote.callback(42)
            self.sides.settle()
            self.assertEqual(self.successResultOf(asking), 42)

    def test_failure(self) -> None:
        """A failure is raised in the loop as the very exception."""
        error = ValueError("v")
        asking = self.bridge.ask(self.visit)
        self.sides.settle()
        self.remote.errback(error)
        self.sides.settle()
        self.assertIs(self.failureResultOf(asking).value, error)

    def test_cancel(self) -> None:
        """A task that is cancelled cancels what the reactor does for it."""
        cancelled: list[Deferred[int]] = []
        self.remote = Deferred(cancelled.append)
        asking = self.bridge.ask(self.visit)
        self.sides.settle()
        asking.cancel()
        self.sides.settle()
        self.failureResultOf(asking, CancelledError)
        self.assertEqual(cancelled, [self.remote])

    def test_cancel_before_it_began(self) -> None:
        """What was cancelled before the reactor came to it is begun and cancelled, or never begun."""
        cancelled: list[Deferred[int]] = []
        self.remote = Deferred(cancelled.append)
        asking = self.bridge.ask(self.visit)
        self.sides.step_loop()
        asking.cancel()
        self.sides.step_loop()
        self.sides.settle()
        self.failureResultOf(asking, CancelledError)
        self.assertEqual(cancelled, [self.remote])

    def test_cancelled_in_the_reactor(self) -> None:
        """A Deferred that somebody else cancels is a failure, not a cancellation of the task."""
        asking = self.bridge.ask(self.visit)
        self.sides.settle()
        self.remote.cancel()
        self.sides.settle()
        self.failureResultOf(asking, RuntimeError)

    def test_loop_gone(self) -> None:
        """An answer for a loop that has ended is dropped without a word."""
        asking = self.bridge.ask(self.visit)
        self.sides.settle()
        self.sides.close()
        self.remote.callback(1)
        self.assertNoResult(asking)
