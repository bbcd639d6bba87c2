"""Failures of work in the background are logged: expected ones in one line, others with their traceback."""

from __future__ import annotations

from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, Logger, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.base import life
from aileron.base.life import Life
from aileron.model.errors import InternalError, StoreUnavailable
from aileron.model.failures import log_failure


class LoggedCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.events: list[LogEvent] = []

    def log(self) -> Logger:
        return Logger("tests", observer=cast("ILogObserver", self.events.append))

    def told(self) -> list[tuple[str, bool]]:
        """What was logged, and whether with a traceback."""
        return [(formatEvent(each), "log_failure" in each) for each in self.events]


class BackgroundTests(LoggedCase):
    def test_own(self) -> None:
        """The database's absence is one line with its reason. A bug has its traceback."""
        for error in (StoreUnavailable("It is away."), InternalError("A bug."), ZeroDivisionError("no")):
            log_failure(self.log(), "recording {type}", Failure(error), type="run.ended")
        self.assertEqual(
            self.told(),
            [("recording run.ended: It is away.", False), ("recording run.ended", True), ("recording run.ended", True)],
        )
        self.assertEqual({each["type"] for each in self.events}, {"run.ended"})


class Unspeakable:
    """A part whose text would take very long to make."""

    def __repr__(self) -> str:
        raise AssertionError("the text of a whole part is made")

    def work(self) -> None:
        raise ValueError("no")

    def __call__(self) -> None:
        raise ValueError("no")


class RepeatedTests(LoggedCase):
    def test_name(self) -> None:
        """Work is named without the text of the object that it belongs to, also at the shutdown."""
        self.patch(life, "_log", self.log())
        parts, clock, part = Life(), Clock(), Unspeakable()
        for each in (part.work, part):
            parts.repeat(clock, 1.0, each)
            parts.at_end(each)
        clock.advance(1.0)
        self.successResultOf(Deferred.fromCoroutine(parts.end()))
        names = "Unspeakable.work", "Unspeakable"
        ends = [(f"shutting down {name} failed", True) for name in reversed(names)]
        self.assertEqual(self.told(), [*((f"{name} failed", True) for name in names), *ends])

    def test_again(self) -> None:
        """Work that failed is done again, and only what is not expected is logged with its traceback."""
        self.patch(life, "_log", self.log())
        clock, parts, errors = Clock(), Life(expected=(StoreUnavailable,)), [StoreUnavailable("Away."), ValueError("x")]

        def work() -> Deferred[None] | None:
            if errors:
                raise errors.pop(0)
            return None

        parts.repeat(clock, 1.0, work)
        for _ in range(3):
            clock.advance(1.0)
        name = f"{type(self).__qualname__}.test_again.<locals>.work failed"
        self.assertEqual(self.told(), [(f"{name}: Away.", False), (name, True)])
        self.assertEqual(errors, [])
